package terminal

import "os"

// Color is an ANSI attribute.
type Color string

// The attributes that are used.
const (
	Bold  Color = "1"
	Red   Color = "31"
	Green Color = "32"
)

// Colorful reports whether text for a writer may have color: it is a terminal that is not dumb, and
// nobody asked for none (https://no-color.org).
func Colorful(w any) bool { return IsTerminal(w) && wantsColor(os.Getenv) }

// wantsColor reports whether the environment lets a terminal have color.
func wantsColor(getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// Colorizer returns a function that colors text; if the writer is not Colorful, the
// function returns text unchanged.
func Colorizer(colorful bool) func(Color, string) string {
	return func(c Color, s string) string {
		if !colorful {
			return s
		}
		return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
	}
}
