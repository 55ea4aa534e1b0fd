package event

// State is a state in a replica's lifecycle.
type State uint8

// The states. Replicas cost money in all of them but Off.
const (
	Ready    State = iota // it takes requests
	Starting              // it starts and loads the model
	Draining              // it gets no new requests, and serves those that it has
	Down                  // it has failed, and will start again
	Off                   // it does not exist
	States                // the number of states
)

// String returns the state in lower case.
func (s State) String() string {
	return [...]string{"ready", "starting", "draining", "down", "off"}[s]
}
