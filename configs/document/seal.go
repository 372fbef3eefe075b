package document

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Seal returns a text with the end line as its last line, behind which nothing is. A text that has
// it is returned as it is. One with more than empty lines behind it is refused: it is not known
// which part was meant.
func Seal(file string, data []byte) ([]byte, error) {
	fault := checkEnd(file, data)
	if fault == nil {
		return data, nil
	}
	text := strings.TrimRight(string(data), " \t\r\n")
	if text == "" {
		return nil, fault
	}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if at := slices.Index(lines, EndLine); at >= 0 {
		if at < len(lines)-1 {
			return nil, fault
		}
		return []byte(text + "\n"), nil
	}
	trimmed := slices.Concat(bytes.TrimRight(data, " \t\r\n"), []byte("\n"+EndLine+"\n"))
	whole := slices.Concat(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"+EndLine+"\n"))
	if filepath.Ext(file) != ".csv" && !meansTheSame(trimmed, whole) {
		return whole, nil // the last text has its spaces or empty lines
	}
	return trimmed, nil
}

// meansTheSame reports whether two texts have the same values, as far as they are YAML.
func meansTheSame(a, b []byte) bool {
	var one, other yaml.Node
	return yaml.Unmarshal(a, &one) != nil || yaml.Unmarshal(b, &other) != nil || sameValue(&one, &other)
}
