"""What the models of `bmi_lm` say."""
