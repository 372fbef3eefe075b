package policy

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/callgate/callgate/parser"
)

// endLine is the last line of every complete file.
const endLine = "# end"

// maxLine is the longest line in bytes, without its line feed.
const maxLine = 64 << 10

// field is one field of a row: its text, and the column at which the text
// begins (after the opening quote of a quoted one).
type field struct {
	text   string
	column int
	quoted bool
}

// record is one row as it was written.
type record struct {
	line   int
	raw    string
	fields []field
}

// readRecords reads the rows of a whole file by the grammar of the package
// comment. Faults go to f; what it returns is whole only when there were none.
func readRecords(data []byte, f *faults) []record {
	if len(data) == 0 {
		f.add(0, 0, "an empty file", "rows and the last line "+endLine)
		return nil
	}
	text := string(data)
	if strings.HasPrefix(text, "\ufeff") {
		f.add(1, 1, "a byte order mark", "UTF-8 without one")
		return nil
	}
	lines := splitLines(text)
	var records []record
	for i, raw := range lines {
		line := i + 1
		if raw == endLine {
			if line != len(lines) {
				f.add(line+1, 0, "a line after "+endLine, endLine+" as the last line")
			}
			return records
		}
		if !cleanLine(raw, line, f) || strings.HasPrefix(raw, "#") || strings.Trim(raw, " ") == "" {
			continue
		}
		if fields, ok := splitFields(raw, line, f); ok {
			records = append(records, record{line: line, raw: raw, fields: fields})
		}
	}
	f.add(len(lines), 0, "no line "+endLine, endLine+" as the last line: the file looks incomplete")
	return nil
}

// splitLines returns the lines of a whole file. Their ends are line feeds, or those of Windows.
func splitLines(text string) []string {
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
}

// cleanLine refuses what a reader cannot see or another program reads otherwise.
func cleanLine(raw string, line int, f *faults) bool {
	if len(raw) > maxLine {
		f.add(line, 0, fmt.Sprintf("a line of %d bytes", len(raw)), fmt.Sprintf("at most %d", maxLine))
		return false
	}
	comment := strings.HasPrefix(raw, "#")
	for i := 0; i < len(raw); {
		r, size := utf8.DecodeRuneInString(raw[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			f.add(line, i+1, fmt.Sprintf("the byte 0x%02X", raw[i]), "valid UTF-8")
			return false
		case r == '\r':
			f.add(line, i+1, "a carriage return alone", "a line feed")
			return false
		case unicode.IsControl(r):
			f.add(line, i+1, fmt.Sprintf("the control character %U", r), "none: separate fields with commas and spaces")
			return false
		case !comment && (unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r >= 0xFE00 && r <= 0xFE0F):
			f.add(line, i+1, fmt.Sprintf("the invisible character %U", r), "none in a row")
			return false
		}
		i += size
	}
	return true
}

// splitFields splits one row. Columns are bytes, from 1.
func splitFields(raw string, line int, f *faults) ([]field, bool) {
	fields := make([]field, 0, 6)
	for at := 0; ; at++ {
		for at < len(raw) && raw[at] == ' ' {
			at++
		}
		if at < len(raw) && raw[at] == '"' {
			start := at + 1
			end, closed := closingQuote(raw, start)
			if !closed {
				f.add(line, at+1, "a quote that is not closed on its line", `a field "…", with "" for a quote inside`)
				return nil, false
			}
			fields = append(fields, field{text: strings.ReplaceAll(raw[start:end], `""`, `"`), column: start + 1, quoted: true})
			for at = end + 1; at < len(raw) && raw[at] == ' '; at++ {
			}
			if at < len(raw) && raw[at] != ',' {
				f.add(line, at+1, parser.Quote(raw[at:])+" after a closing quote", "a comma or the end of the line")
				return nil, false
			}
		} else {
			start := at
			for at < len(raw) && raw[at] != ',' {
				if raw[at] == '"' {
					f.add(line, at+1, "a quote inside a field without quotes", `the whole field as "…", with "" for a quote inside`)
					return nil, false
				}
				at++
			}
			fields = append(fields, field{text: strings.TrimRight(raw[start:at], " "), column: start + 1})
		}
		if at >= len(raw) {
			return fields, true
		}
	}
}

// closingQuote finds the quote that ends the field which starts at from.
func closingQuote(raw string, from int) (end int, ok bool) {
	for i := from; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		if i+1 < len(raw) && raw[i+1] == '"' {
			i++
			continue
		}
		return i, true
	}
	return 0, false
}

// columnOf turns a byte offset in a field's text into a column of its line.
func (r record) columnOf(f field, offset int) int {
	column := f.column
	for i := 0; i < offset && column-1 < len(r.raw); i++ {
		if f.quoted && r.raw[column-1] == '"' {
			column++
		}
		column++
	}
	return column
}
