package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxFaults bounds what one load reports, so that a file of another format does
// not answer with a line for each of its lines.
const maxFaults = 50

// FileError is one fault of a policy file: where it is, what was found there and
// what was expected. It holds text of the file alone, for the operator.
type FileError struct {
	File     string
	Line     int // from 1; 0 where the fault is the whole file's
	Column   int // byte column from 1; 0 where none is known
	Found    string
	Expected string
}

// Error is one line: file:line:column: found …, expected ….
func (e *FileError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
		if e.Column > 0 {
			fmt.Fprintf(&b, ":%d", e.Column)
		}
	}
	fmt.Fprintf(&b, ": found %s, expected %s", e.Found, e.Expected)
	return b.String()
}

// The kinds of warnings.
const (
	Idle      = "idle"       // the row can match nothing
	Repeated  = "repeated"   // the row stands there before
	NoMembers = "no-members" // the row is of a role that nobody has
)

// Warning is something in a policy file that is allowed and surely not meant.
type Warning struct {
	File    string
	Line    int    // from 1
	Kind    string // Idle, Repeated or NoMembers
	Message string
	// UnknownTool says that the row matches nothing because no tool has its name: a tool that a
	// request brings may have it.
	UnknownTool bool
}

// String is one line: file:line: message.
func (w Warning) String() string { return fmt.Sprintf("%s:%d: %s", w.File, w.Line, w.Message) }

// faults collects the errors of one file.
type faults struct {
	file string
	list []*FileError
}

func (f *faults) add(line, column int, found, expected string) {
	f.list = append(f.list, &FileError{File: f.file, Line: line, Column: column, Found: found, Expected: expected})
}

// err joins what was collected in the order of the file, the first maxFaults of
// it; nil when nothing was.
func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	slices.SortStableFunc(f.list, func(a, b *FileError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	var joined []error
	for i, e := range f.list {
		if i == maxFaults {
			joined = append(joined, &FileError{File: f.file, Found: fmt.Sprintf("%d faults more", len(f.list)-maxFaults), Expected: "none"})
			break
		}
		joined = append(joined, e)
	}
	return errors.Join(joined...)
}
