package configs

import (
	"regexp"
	"strings"
)

// Annotation is a key of an annotated file with the comments that explain it.
type Annotation struct {
	Path  []string // empty: the comment is of the whole file
	Value string   // as it is written; empty for a mapping
	Note  string
	// Absent says that the key is absent by default, and Value an example.
	Absent bool
}

// A line of an annotated file: a key, which stands behind # without a space where it is absent by
// default, and behind another in a section that is, or a comment.
var (
	keyLine     = regexp.MustCompile(`^( *)(#?)( *)(#?)([a-z_]+):(.*)$`)
	commentLine = regexp.MustCompile(`^ *(?:# *)?# ?(.*)$`)
)

// Annotations reads the keys of an annotated file, such as the built-in main file, in its order.
func Annotations(annotated string) []Annotation {
	var all []Annotation
	var comment, path []string // path is of the keys above, by depth
	flush := func() string {
		text := strings.Join(comment, " ")
		comment = nil
		return text
	}
	keys, example := 0, false
	for line := range strings.Lines(annotated) {
		line = strings.TrimRight(line, "\n")
		m := keyLine.FindStringSubmatch(line)
		inExample := m != nil && m[2] == "#" && len(m[3]) > 1 && example // of a block that is absent by default
		if m == nil || m[2] == "#" && m[3] != "" && !inExample {
			if c := commentLine.FindStringSubmatch(line); c != nil && line != "# end" {
				comment = append(comment, c[1])
			} else if strings.TrimSpace(line) == "" {
				if text := flush(); text != "" && keys == 0 {
					all = append(all, Annotation{Note: text})
				}
			}
			continue
		}
		depth := (len(m[1]) + len(m[3])) / 2
		path = append(path[:min(depth, len(path)):min(depth, len(path))], m[5])
		value, note, _ := strings.Cut(m[6], " # ")
		all = append(all, Annotation{
			Path: path, Value: strings.TrimSpace(value), Note: strings.TrimSpace(flush() + " " + strings.TrimSpace(note)),
			Absent: m[2] == "#" && !inExample || m[4] == "#",
		})
		keys, example = keys+1, m[2] == "#"
	}
	return all
}
