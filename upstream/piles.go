package upstream

import "bytes"

// mostJoined bounds how deep objects are joined: below, the last stands.
const mostJoined = 8

// memberCost is about what a member takes beside its name and its value.
const memberCost = 256

// manner is what becomes of a member that comes again.
type manner int

const (
	latest manner = iota // the last string stands
	joined               // strings are pieces of one
)

// piles gather the members that the pieces of an answer bring. Of a member that
// comes again, arrays and objects are joined, and strings where they are pieces;
// of anything else the last stands. null takes nothing away.
type piles struct {
	names []string
	by    map[string]*pile
	depth int
}

// pile is one member on its way: raw JSON, or the members of an object.
type pile struct {
	raw     []byte
	empty   bool // an array without elements
	members *piles
}

// add takes in members, and returns by how many bytes the piles have grown.
func (ps *piles) add(x Extra, m manner) (grown int) {
	for i := range x {
		p := ps.by[x[i].Name]
		if p == nil {
			if ps.by == nil {
				ps.by = map[string]*pile{}
			}
			p = &pile{}
			ps.by[x[i].Name] = p
			ps.names = append(ps.names, x[i].Name)
			grown += len(x[i].Name) + memberCost
		}
		grown += p.add(x[i].Value, m, ps.depth)
	}
	return grown
}

func (p *pile) add(value []byte, m manner, depth int) (grown int) {
	before := len(p.raw)
	known := p.raw != nil || p.members != nil
	switch kind := value[0]; {
	case kind == 'n' && known:
	case kind == '{' && p.members != nil:
		grown = p.members.add(membersOf(value), m)
	case !known || p.members != nil || p.raw[0] != kind:
		p.raw, p.members, p.empty = bytes.Clone(value), nil, bare(value)
	case kind == '{' && depth < mostJoined:
		p.members = &piles{depth: depth + 1}
		grown = p.members.add(membersOf(p.raw), m)
		grown += p.members.add(membersOf(value), m)
		p.raw = nil
	case kind == '[':
		p.elements(value)
	case kind == '"' && m == joined:
		p.raw = append(p.raw[:len(p.raw)-1], value[1:]...)
	default:
		p.raw = append(p.raw[:0], value...)
	}
	return grown + len(p.raw) - before
}

// elements adds those of another array. Both are well formed, as they stand.
func (p *pile) elements(value []byte) {
	if bare(value) {
		return
	}
	p.raw = p.raw[:len(p.raw)-1]
	if !p.empty {
		p.raw = append(p.raw, ',')
	}
	p.raw, p.empty = append(p.raw, value[1:]...), false
}

// bare tells whether a value is an array without elements.
func bare(value []byte) bool {
	return value[0] == '[' && len(bytes.TrimSpace(value[1:len(value)-1])) == 0
}

// membersOf reads an object that has been read before.
func membersOf(raw []byte) Extra {
	var x Extra
	r := reader{again: true}
	if err := r.document(raw, func(name []byte) error { return r.keep(&x, name) }); err != nil {
		return nil // it was read strictly before
	}
	return x
}

// extra is what was gathered, in the order in which it came.
func (ps *piles) extra() Extra {
	var x Extra
	for _, name := range ps.names {
		x = append(x, Member{name, ps.by[name].value()})
	}
	return x
}

func (p *pile) value() []byte {
	if p.members == nil {
		return bytes.Clone(p.raw)
	}
	return p.members.extra().object()
}
