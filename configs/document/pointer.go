package document

import (
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/internal/invalid"
	"github.com/callgate/callgate/refusal"
)

// Pointer returns the JSON Pointer of the value that the fault is at, or of the member whose key
// it is at, after Locate. A fault of the text of a file, or of a file that is not of YAML or
// JSON, has none.
func (f *Fault) Pointer() (pointer string, ok bool) { return f.pointer, f.located }

// Locate finds the JSON Pointers of all faults, in one walk through each file, and lets go of the
// files' trees: faults and warnings are kept for as long as a gateway serves.
func (fs Faults) Locate() {
	files := map[*yaml.Node]map[*yaml.Node][]*Fault{}
	for _, f := range fs {
		if f.root == nil {
			continue
		}
		if files[f.root] == nil {
			files[f.root] = map[*yaml.Node][]*Fault{}
		}
		files[f.root][f.node] = append(files[f.root][f.node], f)
		f.node, f.root = nil, nil
	}
	for root, at := range files {
		l := locator{at: at, seen: map[*yaml.Node]bool{}}
		l.locate(root, nil)
	}
}

// locator finds the places of faults. An alias is the node that it names, so that a node can be at
// many places, or below itself: the place at which it comes first counts.
type locator struct {
	at   map[*yaml.Node][]*Fault
	seen map[*yaml.Node]bool
}

// locate tells the faults at a node, and below it, their pointer.
func (l *locator) locate(n *yaml.Node, path []string) {
	if l.seen[n] {
		return
	}
	l.seen[n] = true
	for _, f := range l.at[n] {
		f.pointer, f.located = refusal.Pointer(path...), true
	}
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			member := append(path, n.Content[i].Value)
			if n.Content[i].Kind == yaml.ScalarNode { // a list as a key has no name
				l.locate(n.Content[i], member)
			}
			l.locate(n.Content[i+1], member)
		}
		return
	}
	for i, c := range n.Content {
		l.locate(c, append(path, strconv.Itoa(i)))
	}
}

// FailAt reports the invalid fields of the value that was read at a JSON Pointer below the node.
func (n Node) FailAt(pointer string, fields []invalid.Field) {
	for _, f := range fields {
		n.At(pointer+refusal.Pointer(f.Path...)).Fail("%s", f.Message)
	}
}
