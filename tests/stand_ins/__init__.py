"""What stands in for devices, drivers and machines that are not here."""
