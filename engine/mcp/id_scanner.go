package mcp

import "strconv"

// idScanner finds the id of a message while its bytes pass, even if the message is too
// long to be kept or is not strict JSON: then only the call with that id fails. It holds
// a few bytes.
type idScanner struct {
	depth   int
	quoted  bool
	escaped bool
	inValue bool // after the colon of a member of the message
	name    []byte
	ids     int  // members of that name
	version bool // it has a member "jsonrpc"
	digits  []byte
}

// idName and versionName are the names of members, and maxDigits the length of an id.
const (
	idName      = "id"
	versionName = "jsonrpc"
	maxDigits   = 20
)

// scan scans the next bytes.
func (g *idScanner) scan(b []byte) {
	for _, c := range b {
		if g.quoted {
			g.scanString(c)
			continue
		}
		switch c {
		case '"':
			g.quoted = true
			if g.depth == 1 && !g.inValue {
				g.name = g.name[:0]
			}
		case '{', '[':
			g.depth++
		case '}', ']':
			g.depth--
		case ':':
			if g.depth == 1 && !g.inValue {
				g.inValue = true
				switch string(g.name) {
				case idName:
					g.ids++
				case versionName:
					g.version = true
				}
			}
		case ',':
			g.inValue = g.inValue && g.depth != 1
		default:
			if c > ' ' && g.depth == 1 && g.inValue && string(g.name) == idName && len(g.digits) <= maxDigits {
				g.digits = append(g.digits, c)
			}
		}
	}
}

// scanString scans a byte of a string.
func (g *idScanner) scanString(c byte) {
	switch {
	case g.escaped:
		g.escaped = false
	case c == '\\':
		g.escaped = true
	case c == '"':
		g.quoted = false
	}
	if g.quoted && g.depth == 1 && !g.inValue && len(g.name) <= len(versionName) {
		g.name = append(g.name, c)
	}
}

// id is the id that was found. That of what is no message, as a line of a log, is none.
func (g *idScanner) id() (int64, bool) {
	id, err := strconv.ParseInt(string(g.digits), 10, 64)
	return id, err == nil && g.ids == 1 && g.version && len(g.digits) <= maxDigits
}
