"""The instrument of the studies of BMI, as a binary."""
