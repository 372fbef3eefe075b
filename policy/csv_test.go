package policy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// texts reads the fields of a file; ok is false where it has a fault.
func texts(data []byte) (rows [][]string, ok bool) {
	f := &faults{}
	records := readRecords(data, f)
	for _, r := range records {
		var row []string
		for _, field := range r.fields {
			row = append(row, field.text)
		}
		rows = append(rows, row)
	}
	return rows, len(f.list) == 0
}

// renderRows writes rows with every field quoted.
func renderRows(rows [][]string) []byte {
	var b strings.Builder
	for _, row := range rows {
		for i, field := range row {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`"` + strings.ReplaceAll(field, `"`, `""`) + `"`)
		}
		b.WriteByte('\n')
	}
	return []byte(b.String() + "# end")
}

func TestFields(t *testing.T) {
	for line, want := range map[string][]string{
		`a,b`:               {"a", "b"},
		`  a  ,   b c   `:   {"a", "b c"},
		`,`:                 {"", ""},
		` , `:               {"", ""},
		`a,`:                {"a", ""},
		`""`:                {""},
		`  "a, b"  , c`:     {"a, b", "c"},
		`" a ", b`:          {" a ", "b"},
		`"a ""b"" c"`:       {`a "b" c`},
		`""""`:              {`"`},
		`a # b`:             {"a # b"},
		`p, "x == ""y"",z"`: {"p", `x == "y",z`},
		`ä, "ö"`:            {"ä", "ö"},
	} {
		rows, ok := texts([]byte(line + "\n# end"))
		if !ok || len(rows) != 1 || !slices.Equal(rows[0], want) {
			t.Errorf("%s: %q, %v", line, rows, ok)
		}
	}
}

// Every list of rows without characters that the grammar leaves out survives
// being written and read.
func TestRowsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		field := rapid.StringMatching(`[ a-zA-Z0-9"',.*:#/éλ中-]{0,12}`)
		rows := rapid.SliceOfN(rapid.SliceOfN(field, 1, 7), 0, 6).Draw(t, "rows")
		got, ok := texts(renderRows(rows))
		if !ok || len(got) != len(rows) {
			t.Fatalf("%q: %q", rows, got)
		}
		for i := range rows {
			if !slices.Equal(got[i], rows[i]) {
				t.Fatalf("%q: %q", rows, got)
			}
		}
	})
}

// The reader never panics, and what it accepts it accepts again.
func FuzzRecords(f *testing.F) {
	for _, pattern := range []string{"*.csv", "faulty/*.csv", "warned/*.csv"} {
		files, _ := filepath.Glob(filepath.Join("testdata", pattern))
		for _, file := range files {
			if data, err := os.ReadFile(file); err == nil {
				f.Add(data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, ok := texts(data)
		p, _, err := Load(Source{File: "f", Data: data}, testTools(), testSpaces())
		if (err == nil) != (p != nil) || err == nil && !ok {
			t.Fatalf("policy %v, error %v, readable %v", p != nil, err, ok)
		}
		if !ok {
			return
		}
		second, ok := texts(renderRows(rows))
		if !ok || len(second) != len(rows) {
			t.Fatalf("%q: read again: %q", rows, second)
		}
		for i := range rows {
			if !slices.Equal(second[i], rows[i]) {
				t.Fatalf("%q: read again: %q", rows, second)
			}
		}
	})
}
