package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/callgate/callgate/wrapper"
)

// JSONLine encodes a value as one line of JSON with its line end, in which nothing is
// hidden. The error is an InternalError.
func JSONLine(v any) ([]byte, error) {
	line, err := wrapper.Marshal(v)
	if err != nil {
		return nil, InternalError{Err: err}
	}
	return append(line, '\n'), nil
}

// Table prints rows: as aligned columns below a head, or each as a line of JSON.
type Table struct {
	out     io.Writer
	columns *tabwriter.Writer // nil for JSON
}

// NewTable returns a Table with the head of its columns.
func NewTable(out io.Writer, asJSON bool, head ...string) *Table {
	t := &Table{out: out}
	if !asJSON {
		t.columns = tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
		fmt.Fprintln(t.columns, strings.Join(head, "\t"))
	}
	return t
}

// Print prints a row: its cells as columns, or the value as JSON. Only an InternalError
// is returned; columns appear with Flush.
func (t *Table) Print(value any, cells ...string) error {
	if t.columns != nil {
		fmt.Fprintln(t.columns, strings.Join(cells, "\t"))
		return nil
	}
	line, err := JSONLine(value)
	if err != nil {
		return err
	}
	_, _ = t.out.Write(line) // the command's standard output remembers an error
	return nil
}

// Flush prints the columns, and returns the error of writing them.
func (t *Table) Flush() error {
	if t.columns == nil {
		return nil
	}
	return t.columns.Flush()
}

// firstLineRunes is the length of a text that is shown in a cell.
const firstLineRunes = 72

// FirstLine returns the beginning of a text from outside, at most 72 characters, without
// anything that a terminal would obey.
func FirstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	quoted, err := wrapper.Marshal(s)
	if err != nil {
		return ""
	}
	s = strings.Trim(string(quoted), `"`)
	if r := []rune(s); len(r) > firstLineRunes {
		s = string(r[:firstLineRunes-1]) + "…"
	}
	return s
}
