"""BMI where the information between sentences is known."""
