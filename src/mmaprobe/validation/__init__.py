"""Stream vectors through two devices, compare bits, retest, shrink, classify."""
