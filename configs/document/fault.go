package document

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/internal/parallel"
)

// Fault is one thing that is wrong in a file. Line and Column start at 1; 0 is
// unknown.
type Fault struct {
	File         string
	Line, Column int
	Message      string // what was found and what was expected

	// The node that the fault is at, until Locate finds its place below the root.
	node, root *yaml.Node
	pointer    string
	located    bool
}

// Error is one line, FILE:LINE:COLUMN: MESSAGE, in which nothing is invisible.
func (f *Fault) Error() string {
	at := f.File
	if f.Line > 0 {
		at += fmt.Sprintf(":%d", f.Line)
		if f.Column > 0 {
			at += fmt.Sprintf(":%d", f.Column)
		}
	}
	return escapeInvisible(at + ": " + f.Message)
}

// Parts splits the message into what was found and what was expected, where it says both.
func (f *Fault) Parts() (found, expected string) {
	_, rest, ok := strings.Cut(f.Message, "found ")
	if !ok {
		return "", ""
	}
	for _, separator := range []string{"; expected ", ", expected "} {
		if found, expected, ok := strings.Cut(rest, separator); ok {
			return found, expected
		}
	}
	return "", ""
}

// escapeInvisible escapes characters that would break a line, or be invisible in it:
// messages quote the keys of a file.
func escapeInvisible(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// Faults are all that is wrong with a configuration, by file and line. There is
// at least one.
type Faults []*Fault

func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Sort orders faults by file and place.
func (fs Faults) Sort() {
	slices.SortStableFunc(fs, func(a, b *Fault) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// Each yields an error, or the errors that it joins.
func Each(err error) iter.Seq[error] {
	return func(yield func(error) bool) {
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok {
			yield(err)
			return
		}
		for _, e := range joined.Unwrap() {
			for inner := range Each(e) {
				if !yield(inner) {
					return
				}
			}
		}
	}
}

// MaxFaults bounds what one load reports.
const MaxFaults = 50

// Report gathers faults and warnings while a configuration is read.
type Report struct {
	Unlimited bool // without the bound
	Faults    Faults
	Warnings  Faults
	more      int

	describing *description // set where nothing is read, but what would be is described
}

// Add adds a fault. Beyond MaxFaults, unless Unlimited, faults are only counted.
func (r *Report) Add(f *Fault) {
	if len(r.Faults) >= MaxFaults && !r.Unlimited {
		r.more++
		return
	}
	r.Faults = append(r.Faults, f)
}

// Count returns how many faults were added, those beyond the bound included.
func (r *Report) Count() int { return len(r.Faults) + r.more }

// Spread calls read with each index below n, as many at a time as there are processors. Each has a report of
// its own; they are added in the order of the indices, as if one had been read after the other.
func (r *Report) Spread(n int, read func(i int, r *Report)) {
	own := make([]Report, n)
	parallel.For(n, func(i int) {
		own[i].Unlimited = r.Unlimited
		read(i, &own[i])
	})
	for i := range own {
		for _, f := range own[i].Faults {
			r.Add(f)
		}
		r.more += own[i].more
		r.Warnings = append(r.Warnings, own[i].Warnings...)
	}
}

// refuse adds the fault of a file of which nothing is read.
func (r *Report) refuse(f *Fault) (Node, bool) {
	r.Add(f)
	return Node{}, false
}

// AddError adds an error of another package or of the system, at a file.
func (r *Report) AddError(file string, err error) {
	var f *Fault
	if errors.As(err, &f) {
		r.Add(f)
		return
	}
	r.Add(&Fault{File: file, Message: err.Error()})
}

// Err returns the faults in order, or nil.
func (r *Report) Err() error {
	if len(r.Faults) == 0 {
		return nil
	}
	r.Faults.Locate()
	r.Faults.Sort()
	if r.more > 0 {
		last := r.Faults[len(r.Faults)-1]
		r.Faults = append(r.Faults, &Fault{File: last.File, Message: fmt.Sprintf("and %d more faults", r.more)})
	}
	return r.Faults
}
