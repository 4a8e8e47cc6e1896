"""Series to findings: noise, changepoints, confirmation, attribution. Pure: values in, results with warnings out."""
