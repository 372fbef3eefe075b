package registry

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/refusal"
)

// Place says which bytes a violation points at.
type Place int

const (
	Value  Place = iota // the value that Path leads to
	Name                // the name of the member that Path leads to
	Parent              // the object that lacks the member that Path leads to
)

// Violation is one fault of one call's arguments.
type Violation struct {
	Code refusal.Code // wrong_type, missing_argument, unexpected_argument or invalid_value
	// Path leads from the arguments to the place: member names, unescaped, and
	// indices in decimal. Empty is the arguments themselves.
	Path    []string
	At      Place
	Message string // for the model: one or two sentences that say what to change
	// Cause is for the operator where the fault may be Callgate's own: the
	// judges disagreed, or one failed. It holds no value of the model.
	Cause error
}

// maxViolations bounds what one refusal lists.
const maxViolations = 100

// collector keeps the first violations in the order of the answer: by path
// bytes, then wrong_type, missing, unexpected, invalid. It never holds more
// than twice what it returns.
type collector struct {
	list []entryOfList
	cut  bool // list was cut to maxViolations at least once and is sorted up to there
}

type entryOfList struct {
	Violation
	pointer string
}

func rank(c refusal.Code) int {
	switch c {
	case refusal.WrongType:
		return 0
	case refusal.MissingArgument:
		return 1
	case refusal.UnexpectedArgument:
		return 2
	}
	return 3
}

func (e *entryOfList) compare(o *entryOfList) int {
	return cmp.Or(
		strings.Compare(e.pointer, o.pointer),
		cmp.Compare(rank(e.Code), rank(o.Code)),
		strings.Compare(e.Message, o.Message),
	)
}

// add notes a violation at path, or at last below it. The message is built only
// if there is room for it.
func (c *collector) add(path []token, last *token, code refusal.Code, at Place, say func() string) {
	e := entryOfList{Violation: Violation{Code: code, At: at}, pointer: pointerOf(path, last)}
	if c.cut {
		worst := &c.list[maxViolations-1]
		if cmp.Or(strings.Compare(e.pointer, worst.pointer), cmp.Compare(rank(code), rank(worst.Code))) > 0 {
			return
		}
	}
	e.Path = make([]string, 0, len(path)+1)
	for i := range path {
		e.Path = append(e.Path, path[i].text())
	}
	if last != nil {
		e.Path = append(e.Path, last.text())
	}
	e.Message = say()
	c.list = append(c.list, e)
	if len(c.list) >= 2*maxViolations {
		c.settle()
	}
}

// settle sorts, drops what should not be said and cuts.
func (c *collector) settle() {
	slices.SortStableFunc(c.list, func(a, b entryOfList) int { return a.compare(&b) })
	// Where the type is wrong, nothing else about that value is reported. Its
	// own fault sorts before everything inside it, though not next to it.
	var wrong map[string]bool
	for i := range c.list {
		if c.list[i].Code == refusal.WrongType {
			if wrong == nil {
				wrong = map[string]bool{}
			}
			wrong[c.list[i].pointer] = true
		}
	}
	kept := c.list[:0]
	for _, e := range c.list {
		if len(kept) > 0 {
			p := &kept[len(kept)-1]
			if p.pointer == e.pointer && p.Code == e.Code && (e.Code != refusal.InvalidValue || p.Message == e.Message) {
				continue
			}
		}
		if wrong != nil && hidden(wrong, &e) {
			continue
		}
		kept = append(kept, e)
	}
	clear(c.list[len(kept):])
	c.list = kept
	if len(c.list) >= maxViolations {
		c.list = c.list[:maxViolations]
		c.cut = true
	}
}

func hidden(wrong map[string]bool, e *entryOfList) bool {
	if e.Code != refusal.WrongType && e.At != Parent && e.At != Name && wrong[e.pointer] {
		return true
	}
	for i := len(e.pointer) - 1; i >= 0; i-- {
		if e.pointer[i] == '/' && wrong[e.pointer[:i]] {
			return true
		}
	}
	return false
}

func (c *collector) result() []Violation {
	c.settle()
	if len(c.list) == 0 {
		return nil
	}
	out := make([]Violation, len(c.list))
	for i := range c.list {
		out[i] = c.list[i].Violation
	}
	return out
}

func (t *token) text() string {
	if t.name == "" && t.index >= 0 {
		return strconv.Itoa(t.index)
	}
	return t.name
}

func pointerOf(path []token, last *token) string {
	var b strings.Builder
	for i := range path {
		b.WriteByte('/')
		b.WriteString(refusal.EscapePointer(path[i].text()))
	}
	if last != nil {
		b.WriteByte('/')
		b.WriteString(refusal.EscapePointer(last.text()))
	}
	return b.String()
}
