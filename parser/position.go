package parser

import "strconv"

// PositionPart selects which offset of a JSON value to return.
type PositionPart int

const (
	Value     PositionPart = iota // the first byte of the value
	Name                          // the first byte of the member's name
	Enclosing                     // the first byte of the object that holds the member, there or not
)

// Position is a position within a JSON value: the decoded tokens of its JSON Pointer, and
// which of its offsets is wanted.
type Position struct {
	Path []string
	Part PositionPart
}

// Offsets finds positions in JSON that Parse has read, and returns their byte
// offsets plus base, in one pass over b for all of them. A place that is not
// there gets the offset of the nearest value above it that is.
func Offsets(b []byte, base int, positions []Position) []int {
	offsets := make([]int, len(positions))
	var root wanted
	for i, p := range positions {
		path := p.Path
		if p.Part == Enclosing && len(path) > 0 {
			path = path[:len(path)-1]
		}
		node := &root
		for _, token := range path {
			node = node.child(token)
		}
		if p.Part == Name {
			node.names = append(node.names, i)
		} else {
			node.values = append(node.values, i)
		}
	}
	d := decoder{b: b}
	d.space()
	root.set(offsets, base+d.i)
	d.locate(&root, offsets, base)
	return offsets
}

// wanted is a tree of the positions to find.
type wanted struct {
	values, names []int // indices of positions
	children      map[string]*wanted
}

func (w *wanted) child(token string) *wanted {
	c := w.children[token]
	if c == nil {
		if w.children == nil {
			w.children = map[string]*wanted{}
		}
		c = &wanted{}
		w.children[token] = c
	}
	return c
}

// set gives one offset to every place of the tree; the offset of a value that is found
// below replaces it.
func (w *wanted) set(offsets []int, at int) {
	for _, i := range w.values {
		offsets[i] = at
	}
	for _, i := range w.names {
		offsets[i] = at
	}
	for _, c := range w.children {
		c.set(offsets, at)
	}
}

// locate walks the value at the decoder as far as positions are wanted in it.
func (d *decoder) locate(w *wanted, offsets []int, base int) {
	if len(w.children) == 0 || d.i >= len(d.b) || d.b[d.i] != '{' && d.b[d.i] != '[' {
		d.skip()
		return
	}
	object := d.b[d.i] == '{'
	index := 0
	d.each(func(name []byte, at int) {
		token := strconv.Itoa(index)
		if object {
			token = unquote(name)
		}
		index++
		c := w.children[token]
		if c == nil {
			d.skip()
			return
		}
		c.set(offsets, base+d.i)
		for _, i := range c.names {
			offsets[i] = base + at
		}
		d.locate(c, offsets, base)
	})
}
