package schema

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/callgate/callgate/refusal"
)

// faultKind is a keyword that a value failed, as far as messages differ.
type faultKind int

const (
	faultNever faultKind = iota
	faultEnum
	faultConst
	faultMinLength
	faultMaxLength
	faultPattern
	faultFormat
	faultMinimum
	faultMaximum
	faultExclusiveMinimum
	faultExclusiveMaximum
	faultMultiple
	faultMinItems
	faultMaxItems
	faultUnique
	faultContains
	faultContainsMany
	faultMinProperties
	faultMaxProperties
	faultAnyOf
	faultOneOf
	faultOneOfMany
	faultNot
	faultThen
	faultElse
	faultName // of a member
)

// pathToken is one step into the value.
type pathToken struct {
	name  string
	index int // -1: name holds a member's name
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

// finding is a violation whose message has not been built yet.
type finding struct {
	code    refusal.Code
	at      Position
	path    []pathToken
	pointer string
	by      *node
	fault   faultKind
	words   *words
	render  func(place string) string
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
		f.message = f.render(f.words.place(f.path))
	}
	return f.message
}
