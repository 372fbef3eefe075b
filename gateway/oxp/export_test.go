package oxp

// For tests.
var (
	StatusOf = statusOf
	Executed = executed
)

// Asks is the input of a body that is a call.
func Asks(body []byte) (input string, ok bool) {
	a, err := readBody(body)
	return string(a.input), err == nil
}
