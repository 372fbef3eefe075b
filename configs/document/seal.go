package document

import (
	"bytes"
	"slices"
	"strings"
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
	return slices.Concat(bytes.TrimRight(data, " \t\r\n"), []byte("\n"+EndLine+"\n")), nil
}
