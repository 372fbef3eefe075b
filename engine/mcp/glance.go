package mcp

import "strconv"

// glance finds the id of a message while it passes, whatever the message is worth
// otherwise: a line that is too long to be kept, or that is not strict JSON, is the
// fault of the one call that it answers. It holds a few bytes at most.
type glance struct {
	depth   int
	quoted  bool
	escaped bool
	value   bool // behind the colon of a member of the message
	name    []byte
	ids     int // members of that name
	number  []byte
}

// idName is the name of the member, and maxDigits of what it can be.
const (
	idName    = "id"
	maxDigits = 20
)

// see takes the next bytes.
func (g *glance) see(b []byte) {
	for _, c := range b {
		if g.quoted {
			g.inside(c)
			continue
		}
		switch c {
		case '"':
			g.quoted = true
			if g.depth == 1 && !g.value {
				g.name = g.name[:0]
			}
		case '{', '[':
			g.depth++
		case '}', ']':
			g.depth--
		case ':':
			if g.depth == 1 && !g.value {
				g.value = true
				if string(g.name) == idName {
					g.ids++
				}
			}
		case ',':
			g.value = g.value && g.depth != 1
		default:
			if c > ' ' && g.depth == 1 && g.value && string(g.name) == idName && len(g.number) <= maxDigits {
				g.number = append(g.number, c)
			}
		}
	}
}

// inside takes a byte of a string.
func (g *glance) inside(c byte) {
	switch {
	case g.escaped:
		g.escaped = false
	case c == '\\':
		g.escaped = true
	case c == '"':
		g.quoted = false
	}
	if g.quoted && g.depth == 1 && !g.value && len(g.name) <= len(idName) {
		g.name = append(g.name, c)
	}
}

// id is the one that was seen.
func (g *glance) id() (int64, bool) {
	id, err := strconv.ParseInt(string(g.number), 10, 64)
	return id, err == nil && g.ids == 1 && len(g.number) <= maxDigits
}
