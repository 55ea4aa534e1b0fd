package names

// Used is used; Met, Embedded and First are met.
type Used struct{ Field map[string][]Met }

type Met interface{ Embedded }

type Embedded interface{ Order() Kind }

type Kind int

const First Kind = 1

// Hidden is not met: it is in a field that is not exported.
type Hidden struct{}

type holder struct{ hidden Hidden }

func Lonely() {}

func Elsewhere() holder { return holder{} }
