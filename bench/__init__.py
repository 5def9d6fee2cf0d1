"""What is measured, how, and the tables it prints: always as ratios within one run."""
