package wide

// wide has 41 methods by embedding, and as a record more fields than other types may have.
type wide struct {
	First
	*Second
}

type First struct{ F0, F1, F2, F3, F4, F5, F6, F7, F8, F9, F10, F11, F12, F13, F14, F15, F16, F17, F18, F19 int }

type Second struct{ S0, S1, S2, S3, S4, S5, S6, S7, S8, S9, S10, S11, S12, S13, S14, S15, S16, S17, S18, S19 int }

func (First) A0()    {}
func (First) A1()    {}
func (First) A2()    {}
func (First) A3()    {}
func (First) A4()    {}
func (First) A5()    {}
func (First) A6()    {}
func (First) A7()    {}
func (First) A8()    {}
func (First) A9()    {}
func (First) A10()   {}
func (First) A11()   {}
func (First) A12()   {}
func (First) A13()   {}
func (First) A14()   {}
func (First) A15()   {}
func (First) A16()   {}
func (First) A17()   {}
func (First) A18()   {}
func (First) A19()   {}
func (First) A20()   {}
func (*Second) B0()  {}
func (*Second) B1()  {}
func (*Second) B2()  {}
func (*Second) B3()  {}
func (*Second) B4()  {}
func (*Second) B5()  {}
func (*Second) B6()  {}
func (*Second) B7()  {}
func (*Second) B8()  {}
func (*Second) B9()  {}
func (*Second) B10() {}
func (*Second) B11() {}
func (*Second) B12() {}
func (*Second) B13() {}
func (*Second) B14() {}
func (*Second) B15() {}
func (*Second) B16() {}
func (*Second) B17() {}
func (*Second) B18() {}
func (*Second) B19() {}

// secret is no record.
type secret struct {
	First
	f0, f1, f2, f3, f4, f5 int
}

func long() int {
	n := 0
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	return n
}

//	xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
//	xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
