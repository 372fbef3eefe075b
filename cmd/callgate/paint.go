package main

// colour is an ANSI attribute.
type colour string

const (
	bold  colour = "1"
	red   colour = "31"
	green colour = "32"
)

// painter returns how text is coloured: not at all where there is no terminal.
func painter(terminal bool) func(colour, string) string {
	return func(c colour, s string) string {
		if !terminal {
			return s
		}
		return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
	}
}
