package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// widestAligned is the widest field that the others of its column are aligned with, in characters.
const widestAligned = 80

// Format returns a complete policy file with the fields of its rows in columns, those of p and of
// g rows apart, and at most one empty line in a row. Comments stay as they are, but for one that
// names the columns. The fields stay the same, byte for byte, and formatting the result again
// changes nothing. The error is one or more *FileError.
func Format(file string, data []byte) ([]byte, error) {
	f := &faults{file: file}
	rows := map[int]record{}
	widths := map[string][]int{}
	for _, r := range readRecords(data, f) {
		rows[r.line] = r
		letter := r.fields[0].text
		for i, one := range r.fields {
			if len(widths[letter]) <= i {
				widths[letter] = append(widths[letter], 0)
			}
			if width := utf8.RuneCountInString(one.written()); width <= widestAligned {
				widths[letter][i] = max(widths[letter][i], width)
			}
		}
	}
	if len(f.list) > 0 {
		return nil, f.err()
	}
	var b strings.Builder
	blank := true
	for i, line := range splitLines(string(data)) {
		line, number := strings.TrimRight(line, " "), i+1
		r, isRow := rows[number]
		switch {
		case isRow:
			line = aligned(r.fields, widths[r.fields[0].text])
		case line == "" && blank:
			continue
		case strings.HasPrefix(line, "# p,"), strings.HasPrefix(line, "# g,"):
			if fields, ok := splitFields(line, number, &faults{}); ok && len(fields) == len(widths[line[2:3]]) {
				line = aligned(fields, widths[line[2:3]])
			}
		}
		blank = line == ""
		b.WriteString(line + "\n")
	}
	out := []byte(b.String())
	after := readRecords(out, f)
	if len(f.list) > 0 || !slices.EqualFunc(readRecords(data, f), after, sameFields) {
		return nil, fmt.Errorf("%s: found rows that formatting would change; expected others, or leave the file as it is", file)
	}
	return out, nil
}

// written is a field as a row has it.
func (f field) written() string {
	if f.quoted {
		return `"` + strings.ReplaceAll(f.text, `"`, `""`) + `"`
	}
	return f.text
}

// aligned writes fields so that each begins at its column, or a space behind the one before.
func aligned(fields []field, widths []int) string {
	var b strings.Builder
	at, start := 0, 0 // in characters
	for i, one := range fields {
		if i > 0 {
			start += widths[i-1] + len(", ")
			pad := max(start-at-1, 1)
			b.WriteString("," + strings.Repeat(" ", pad))
			at += 1 + pad
		}
		text := one.written()
		b.WriteString(text)
		at += utf8.RuneCountInString(text)
	}
	return strings.TrimRight(b.String(), " ")
}

func sameFields(a, b record) bool {
	return slices.EqualFunc(a.fields, b.fields, func(x, y field) bool { return x.text == y.text && x.quoted == y.quoted })
}
