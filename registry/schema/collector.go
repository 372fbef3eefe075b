package schema

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/refusal"
)

// maxViolations bounds what one refusal lists.
const maxViolations = 100

// collector keeps the first violations in the order of the answer: by path
// bytes, then wrong_type, missing, unexpected, invalid. It never holds more
// than twice what it returns.
type collector struct {
	list []*finding
	cut  bool // list was cut to maxViolations at least once and is sorted up to there
}

// finding is a violation before it is put into words.
type finding struct {
	code    refusal.Code
	at      Place
	path    []pathToken
	pointer string
	by      *node
	fault   faultKind
	render  func(argument string) string
	message string // "" until it is asked for
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

func (f *finding) comparePlace(o *finding) int {
	return cmp.Or(strings.Compare(f.pointer, o.pointer), cmp.Compare(rank(f.code), rank(o.code)))
}

// compare orders findings. Messages count only between several faults of one
// value, which may all be listed, so that most are never built.
func (f *finding) compare(o *finding) int {
	if c := f.comparePlace(o); c != 0 || f.code != refusal.InvalidValue || f.by == o.by && f.fault == o.fault {
		return c
	}
	return strings.Compare(f.text(), o.text())
}

func (f *finding) text() string {
	if f.message == "" {
		f.message = f.render(argument(f.path))
	}
	return f.message
}

// add notes a finding if there is room for it.
func (c *collector) add(f finding) {
	if c.cut && f.comparePlace(c.list[maxViolations-1]) > 0 {
		return
	}
	f.path = slices.Clone(f.path)
	c.list = append(c.list, &f)
	if len(c.list) >= 2*maxViolations {
		c.compact()
	}
}

// compact sorts, drops what should not be said and cuts.
func (c *collector) compact() {
	slices.SortStableFunc(c.list, (*finding).compare)
	// Where the type is wrong, nothing else about that value is reported. Its
	// own fault sorts before everything inside it, though not next to it.
	var wrong map[string]bool
	for _, f := range c.list {
		if f.code == refusal.WrongType {
			if wrong == nil {
				wrong = map[string]bool{}
			}
			wrong[f.pointer] = true
		}
	}
	kept := c.list[:0]
	for _, f := range c.list {
		if n := len(kept); n > 0 && f.compare(kept[n-1]) == 0 || hiddenByType(wrong, f) {
			continue
		}
		kept = append(kept, f)
		if len(kept) == maxViolations {
			c.cut = true
			break
		}
	}
	clear(c.list[len(kept):])
	c.list = kept
}

func hiddenByType(wrong map[string]bool, f *finding) bool {
	if len(wrong) == 0 {
		return false
	}
	if f.code != refusal.WrongType && f.at == Value && wrong[f.pointer] {
		return true
	}
	for i := len(f.pointer) - 1; i >= 0; i-- {
		if f.pointer[i] == '/' && wrong[f.pointer[:i]] {
			return true
		}
	}
	return false
}

// result puts into words what was found.
func (j *evaluation) result() []Violation {
	j.found.compact()
	var out []Violation
	for _, f := range j.found.list {
		v := Violation{Code: f.code, At: f.at, Message: f.text(), Path: make([]string, len(f.path))}
		for k := range f.path {
			v.Path[k] = f.path[k].text()
		}
		out = append(out, v)
	}
	return out
}

func (t *pathToken) text() string {
	if t.name == "" && t.index >= 0 {
		return strconv.Itoa(t.index)
	}
	return t.name
}

func pointerOf(path []pathToken) string {
	var b strings.Builder
	for i := range path {
		b.WriteByte('/')
		b.WriteString(refusal.EscapePointer(path[i].text()))
	}
	return b.String()
}
