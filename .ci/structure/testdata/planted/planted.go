package planted

// Unused is not counted: the root package is for users outside.
func Unused() {}
