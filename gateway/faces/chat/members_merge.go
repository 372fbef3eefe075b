package chat

import (
	"bytes"

	"github.com/callgate/callgate/internal/rawjson"
)

// maxMergeDepth bounds how deep objects are merged: below it, the last value replaces the one
// before.
const maxMergeDepth = 8

// memberCost is about how many bytes a member takes in addition to its name and value.
const memberCost = 256

// mergeMode says how strings of a repeated member are merged.
type mergeMode int

const (
	replaceStrings mergeMode = iota // the last string replaces the one before
	concatStrings                   // strings are pieces of one string
	// replaceRepeated is replaceStrings, and an array that begins with all elements of the one before replaces it:
	// some providers repeat their citations in each chunk.
	replaceRepeated
)

// mergedMembers merges the members of all chunks of an answer. When a member is
// repeated, arrays are appended, objects merged, and strings concatenated or replaced by mode;
// any other value replaces the one before. null changes nothing.
type mergedMembers struct {
	names  []string
	byName map[string]*mergedMember
	depth  int
}

// mergedMember is the value of one member so far: raw JSON, or the members of an object.
type mergedMember struct {
	raw        []byte
	emptyArray bool // an array without elements
	members    *mergedMembers
}

// add merges members, and returns by how many bytes the result has grown.
func (ps *mergedMembers) add(x rawjson.Object, m mergeMode) (grown int) {
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
		grown += p.add(rawjson.OneLine(x[i].Value), m, ps.depth)
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
	case kind == '[' && m == replaceRepeated && p.isRepeatedBy(value):
		p.raw = append(p.raw[:0], value...)
	case kind == '[':
		p.appendElements(value)
	case kind == '"' && m == concatStrings:
		p.raw = append(p.raw[:len(p.raw)-1], value[1:]...)
	default:
		p.raw = append(p.raw[:0], value...)
	}
	return grown + len(p.raw) - before
}

// isRepeatedBy reports whether another array begins with all elements of this one.
func (p *mergedMember) isRepeatedBy(value []byte) bool {
	more, same := bytes.CutPrefix(value, p.raw[:len(p.raw)-1])
	return same && !p.emptyArray && (more[0] == ',' || more[0] == ']')
}

// appendElements appends the elements of another array. Both are valid JSON.
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

// isEmptyArray reports whether a value is an array without elements.
func isEmptyArray(value []byte) bool {
	return value[0] == '[' && len(bytes.TrimSpace(value[1:len(value)-1])) == 0
}

// membersOf are the members of an object that was checked before.
func membersOf(raw []byte) rawjson.Object {
	o, _ := rawjson.Members(raw)
	return o
}

// object returns the merged members, in the order of their first appearance.
func (ps *mergedMembers) object() (o rawjson.Object) {
	for _, name := range ps.names {
		o = append(o, rawjson.Field(name, ps.byName[name].value()))
	}
	return o
}

func (p *mergedMember) value() []byte {
	if p.members == nil {
		return bytes.Clone(p.raw)
	}
	return p.members.object().Bytes()
}
