package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// blankMark stands for an empty line while a file is formatted: YAML keeps comments alone.
const blankMark = "#%callgate:blank"

// formatRounds bounds how often a file is formatted until it no longer changes.
const formatRounds = 5

// Format returns a complete YAML file, or by its name a JSON file, in its usual layout: indented by
// two spaces, one space before a comment, no spaces at the end of lines, and at most one empty line
// in a row. Comments stay, and so do quotes, braces and the end line. The result means the same,
// and formatting it again changes nothing; where that cannot be had, the error says so.
func Format(file string, data []byte) ([]byte, error) {
	read, layOut := ReadYAML, layOutYAML
	if filepath.Ext(file) == ".json" {
		read, layOut = ReadJSON, layOutJSON
	}
	var r Report
	before, ok := read(&r, file, data)
	if !ok {
		return nil, r.Err()
	}
	out := data
	for range formatRounds {
		next, err := layOut(out)
		if err != nil {
			return nil, &Fault{File: file, Message: "found a layout that cannot be changed (" + err.Error() +
				"); expected another, or leave the file as it is"}
		}
		if bytes.Equal(next, out) {
			return out, unchanged(read, before, data, out)
		}
		out = next
	}
	return nil, &Fault{File: file, Message: "found a layout that changes each time it is formatted; expected a plainer one, or leave the file as it is"}
}

// unchanged returns an error unless two texts have the same values and comments.
func unchanged(read func(*Report, string, []byte) (Node, bool), before Node, data, out []byte) error {
	var r Report
	after, ok := read(&r, before.File, out)
	if !ok || !sameValue(before.Node, after.Node) {
		return &Fault{File: before.File, Message: "found values that formatting would change; expected a plainer layout, or leave the file as it is"}
	}
	if filepath.Ext(before.File) != ".json" && !slices.Equal(inOrder(before.Node, data), inOrder(after.Node, out)) {
		return &Fault{File: before.File, Message: "found comments that formatting would change or move; expected them on lines of their own, indented as what they stand above, or leave the file as it is"}
	}
	return nil
}

// sameValue reports whether two nodes have the same value, with keys in the same order.
func sameValue(a, b *yaml.Node) bool {
	return a.Kind == b.Kind && a.ShortTag() == b.ShortTag() && a.Value == b.Value && slices.EqualFunc(a.Content, b.Content, sameValue)
}

// comment is what may be a comment, to the end of its line: in doubt too much is compared.
var comment = regexp.MustCompile(`(?:^|[ \t])#.*$`)

// inOrder returns all scalars and comments in the order of their lines: a comment that moves may say
// something else there.
func inOrder(root *yaml.Node, data []byte) []string {
	byLine := map[int][]string{}
	var visit func(n *yaml.Node)
	visit = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode {
			byLine[n.Line] = append(byLine[n.Line], n.Value)
		}
		for _, c := range n.Content {
			visit(c)
		}
	}
	visit(root)
	var all, last []string // last are the scalars that may not have ended yet
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		if here := byLine[line]; len(here) > 0 {
			all, last = append(all, here...), here
		}
		if c := comment.FindString(strings.TrimRight(text, "\r\n")); c != "" &&
			!slices.ContainsFunc(last, func(value string) bool { return partOf(value, c) }) {
			all = append(all, strings.TrimSpace(c))
		}
	}
	return all
}

// partOf reports whether a line's end is a part of a scalar, which may have more lines.
func partOf(value, end string) bool {
	return strings.Contains(strings.Join(strings.Fields(value), " "), strings.Join(strings.Fields(strings.TrimRight(end, `"',]} `)), " "))
}

// layOutJSON indents JSON.
func layOutJSON(data []byte) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(data), "", "  "); err != nil {
		return nil, err
	}
	return append(b.Bytes(), '\n'), nil
}

// layOutYAML writes YAML anew from its nodes.
func layOutYAML(data []byte) ([]byte, error) {
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	lines := strings.Split(strings.TrimSuffix(strings.TrimSuffix(text, "\n"), EndLine), "\n")
	if strings.Contains(text, blankMark) {
		return nil, fmt.Errorf("it contains %s", blankMark)
	}
	var original yaml.Node
	if err := yaml.Unmarshal(data, &original); err != nil {
		return nil, err
	}
	keep := linesOfScalars(&original, lines)
	for i, line := range lines {
		if strings.TrimSpace(line) == "" && !keep[i] {
			lines[i] = blankMark
		}
	}
	var marked yaml.Node
	out := []byte(strings.Join(lines, "\n") + "\n")
	if err := yaml.Unmarshal(out, &marked); err != nil {
		return nil, err
	}
	if !marked.IsZero() { // else there are comments alone
		var err error
		if out, err = yaml.Dump(&marked, yaml.WithIndent(2), yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(-1)); err != nil {
			return nil, err
		}
	}
	var b strings.Builder
	blank := true // at the start there is none
	for line := range strings.Lines(strings.TrimRight(string(out), "\n") + "\n") {
		if strings.TrimSpace(line) == blankMark {
			if !blank {
				b.WriteByte('\n')
			}
			blank = true
			continue
		}
		b.WriteString(line)
		blank = false
	}
	return []byte(strings.TrimLeft(strings.TrimRight(b.String(), "\n")+"\n", "\n") + EndLine + "\n"), nil
}

// linesOfScalars tells which lines, from 0, are within a scalar of several lines: there an empty
// line is part of a value.
func linesOfScalars(root *yaml.Node, lines []string) map[int]bool {
	within := map[int]bool{}
	mark := func(from, to int) {
		for i := from; i <= to && i < len(lines); i++ {
			within[i] = true
		}
	}
	var visit func(n *yaml.Node)
	visit = func(n *yaml.Node) {
		switch {
		case n.Kind != yaml.ScalarNode:
		case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 && n.Value != "":
			last, indent := n.Line-1, -1
			for i := n.Line; i < len(lines); i++ {
				text := strings.TrimLeft(lines[i], " ")
				if indent < 0 && text != "" {
					indent = len(lines[i]) - len(text)
				}
				if text != "" && len(lines[i])-len(text) < indent {
					break
				}
				if text != "" {
					last = i
				}
			}
			mark(n.Line, last)
		case strings.Contains(n.Value, "\n") && !closed(lines[n.Line-1]):
			mark(n.Line, n.Line+2*strings.Count(n.Value, "\n")+strings.Count(n.Value, " "))
		}
		for _, c := range n.Content {
			visit(c)
		}
	}
	visit(root)
	return within
}

// closed reports whether each quote that opens on a line ends on it.
func closed(line string) bool {
	return strings.Contains(line, `"`) && (strings.Count(line, `"`)-strings.Count(line, `\"`))%2 == 0
}
