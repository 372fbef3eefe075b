package main

// color is an ANSI attribute.
type color string

const (
	bold  color = "1"
	red   color = "31"
	green color = "32"
)

// colorizer returns how text is coloured: not at all where there is no terminal.
func colorizer(terminal bool) func(color, string) string {
	return func(c color, s string) string {
		if !terminal {
			return s
		}
		return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
	}
}
