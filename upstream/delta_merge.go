package upstream

import "bytes"

// maxMergeDepth bounds how deep objects are joined: below, the last stands.
const maxMergeDepth = 8

// memberCost is about what a member takes beside its name and its value.
const memberCost = 256

// mergeMode is what becomes of a member that comes again.
type mergeMode int

const (
	replaceStrings mergeMode = iota // the last string stands
	concatStrings                   // strings are pieces of one
)

// mergedMembers gather the members that the pieces of an answer bring. Of a member that
// comes again, arrays and objects are joined, and strings where they are pieces;
// of anything else the last stands. null takes nothing away.
type mergedMembers struct {
	names  []string
	byName map[string]*mergedMember
	depth  int
}

// mergedMember is one member on its way: raw JSON, or the members of an object.
type mergedMember struct {
	raw        []byte
	emptyArray bool // an array without elements
	members    *mergedMembers
}

// add takes in members, and returns by how many bytes the piles have grown.
func (ps *mergedMembers) add(x Extra, m mergeMode) (grown int) {
	for i := range x {
		p := ps.byName[x[i].Name]
		if p == nil {
			if ps.byName == nil {
				ps.byName = map[string]*mergedMember{}
			}
			p = &mergedMember{}
			ps.byName[x[i].Name] = p
			ps.names = append(ps.names, x[i].Name)
			grown += len(x[i].Name) + memberCost
		}
		grown += p.add(x[i].Value, m, ps.depth)
	}
	return grown
}

func (p *mergedMember) add(value []byte, m mergeMode, depth int) (grown int) {
	before := len(p.raw)
	known := p.raw != nil || p.members != nil
	switch kind := value[0]; {
	case kind == 'n' && known:
	case kind == '{' && p.members != nil:
		grown = p.members.add(membersOf(value), m)
	case !known || p.members != nil || p.raw[0] != kind:
		p.raw, p.members, p.emptyArray = bytes.Clone(value), nil, isEmptyArray(value)
	case kind == '{' && depth < maxMergeDepth:
		p.members = &mergedMembers{depth: depth + 1}
		grown = p.members.add(membersOf(p.raw), m)
		grown += p.members.add(membersOf(value), m)
		p.raw = nil
	case kind == '[':
		p.appendElements(value)
	case kind == '"' && m == concatStrings:
		p.raw = append(p.raw[:len(p.raw)-1], value[1:]...)
	default:
		p.raw = append(p.raw[:0], value...)
	}
	return grown + len(p.raw) - before
}

// appendElements adds those of another array. Both are well formed, as they stand.
func (p *mergedMember) appendElements(value []byte) {
	if isEmptyArray(value) {
		return
	}
	p.raw = p.raw[:len(p.raw)-1]
	if !p.emptyArray {
		p.raw = append(p.raw, ',')
	}
	p.raw, p.emptyArray = append(p.raw, value[1:]...), false
}

// isEmptyArray tells whether a value is an array without elements.
func isEmptyArray(value []byte) bool {
	return value[0] == '[' && len(bytes.TrimSpace(value[1:len(value)-1])) == 0
}

// membersOf reads an object that has been read before.
func membersOf(raw []byte) Extra {
	var x Extra
	r := reader{trusted: true}
	if err := r.document(raw, func(name []byte) error { return r.keepExtra(&x, name) }); err != nil {
		return nil // it was read strictly before
	}
	return x
}

// extra is what was gathered, in the order in which it came.
func (ps *mergedMembers) extra() Extra {
	var x Extra
	for _, name := range ps.names {
		x = append(x, Member{name, ps.byName[name].value()})
	}
	return x
}

func (p *mergedMember) value() []byte {
	if p.members == nil {
		return bytes.Clone(p.raw)
	}
	return p.members.extra().object()
}
