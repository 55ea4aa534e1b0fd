package experiments

// Version is the version of the program, which results carry.
const Version = "0.1.0"
