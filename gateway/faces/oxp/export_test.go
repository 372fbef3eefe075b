package oxp

// For tests.
var (
	StatusOf    = statusOf
	WasExecuted = wasExecuted
)

// ReadInput is the input of a body that is a call.
func ReadInput(body []byte) (input string, ok bool) {
	a, err := readBody(body)
	return string(a.input), err == nil
}
