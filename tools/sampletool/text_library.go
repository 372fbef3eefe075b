package main

import (
	"context"
	"embed"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"unicode/utf8"
)

//go:embed texts
var bundledTexts embed.FS

// bundled is the folder of texts that comes with the program.
func bundled() (fs.FS, error) { return fs.Sub(bundledTexts, "texts") }

// maxText is the longest text, in bytes, that is read or searched.
const maxText = 1 << 20

// library is a folder of text files. Where it is a folder of the disk it must
// be one of an os.Root, which no path and no symbolic link leaves.
type library struct{ files fs.FS }

// open reads one regular file of valid UTF-8 without NUL.
func (l library) open(path string) (string, error) {
	// Asked first: to open a named pipe would be to wait for its writer.
	info, err := fs.Stat(l.files, path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", failed(http.StatusBadRequest, "found no regular file; expected a text file")
	}
	f, err := l.files.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, maxText+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > maxText:
		return "", failed(http.StatusBadRequest, "found a file over %d bytes; expected at most that", maxText)
	case !utf8.Valid(data) || strings.IndexByte(string(data), 0) >= 0:
		return "", failed(http.StatusBadRequest, "found what is not text; expected UTF-8")
	}
	return string(data), nil
}

// linesOf are the lines of a text without their ends.
func linesOf(text string) []string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	return lines
}

// page is what /read answers: the lines first to last, counted from 1, of so
// many.
type page struct {
	Path  string `json:"path"`
	First int    `json:"first"`
	Last  int    `json:"last"`
	Of    int    `json:"of"`
	Text  string `json:"text"`
}

// read is the tool /read.
func (l library) read(_ context.Context, body []byte) (any, error) {
	var (
		path  string
		wants []whole
	)
	const twoLines = "the first and the last line, from 1, as in [1, 20]"
	err := decode(body,
		argument{name: "path", into: &path, expected: "a path within the folder", required: true},
		argument{name: "lines", into: &wants, expected: twoLines},
	)
	if err != nil {
		return nil, err
	}
	if !fs.ValidPath(path) {
		return nil, failed(http.StatusBadRequest, "found a path that is absolute or not clean; expected one such as handbook/shipping.txt")
	}
	if wants != nil && (len(wants) != 2 || wants[0] < 1 || wants[1] < wants[0]) {
		return nil, failed(http.StatusBadRequest, "found other lines; expected %s", twoLines)
	}
	text, err := l.open(path)
	if err != nil {
		return nil, notThere(err)
	}
	lines := linesOf(text)
	p := page{Path: path, First: 1, Last: len(lines), Of: len(lines), Text: text}
	if wants != nil {
		if int(wants[0]) > len(lines) {
			return nil, failed(http.StatusBadRequest, "found a first line past the end; expected at most %d", len(lines))
		}
		p.First, p.Last = int(wants[0]), min(int(wants[1]), len(lines))
		p.Text = strings.Join(lines[p.First-1:p.Last], "\n") + "\n"
	}
	return p, nil
}

// notThere makes an error of the file system one for the client. A path that leads out
// of the folder gets the answer of a missing file.
func notThere(err error) error {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	return failed(http.StatusNotFound, "there is no such file in the folder")
}
