package terminal

// Color is an ANSI attribute.
type Color string

// The attributes that are used.
const (
	Bold  Color = "1"
	Red   Color = "31"
	Green Color = "32"
)

// Colorizer returns a function that colors text; if the writer is not a terminal, the
// function returns text unchanged.
func Colorizer(terminal bool) func(Color, string) string {
	return func(c Color, s string) string {
		if !terminal {
			return s
		}
		return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
	}
}
