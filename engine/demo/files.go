package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"unicode/utf8"

	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// readFile is the tool files.read: path, and optionally lines, the first and
// the last line to read, counted from 1. A relative path starts at the first
// root. The file is opened beneath its root, one part of the path after the
// other, so that neither ".." nor a symbolic link leads out, also where the
// tree changes meanwhile.
func readFile(ctx context.Context, call tool.Call, given arguments) (any, *refusal.Error) {
	path, refused := given.text("path")
	if refused != nil {
		return nil, refused
	}
	from, to, refused := given.lineRange()
	if refused != nil {
		return nil, refused
	}
	root, name, ok := resolvePath(call.Roots, path)
	if !ok {
		return nil, refuse.Failed("The path is not within the project's folder; use one that is.")
	}
	file, refused := openFile(root, name)
	if refused != nil {
		return nil, refused
	}
	defer file.Close()

	type result struct {
		Path  string `json:"path"`
		Text  string `json:"text"`
		Lines []int  `json:"lines,omitempty"`
	}
	out := result{Path: filepath.ToSlash(name)}
	var content []byte
	if to == 0 {
		var err error
		if content, err = io.ReadAll(io.LimitReader(file, call.Run.MaxResultBytes+1)); err != nil {
			return nil, unreadableFile(err)
		}
		if int64(len(content)) > call.Run.MaxResultBytes {
			return nil, refuse.ResultTooLarge(call)
		}
	} else {
		if content, to, refused = readLines(ctx, call, file, from, to); refused != nil {
			return nil, refused
		}
		out.Lines = []int{from, to}
	}
	if !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0 {
		return nil, refuse.Failed("The file is not text; choose another.")
	}
	out.Text = string(content)
	return out, nil
}

// lineRange returns the range of lines; to is 0 if none is given.
func (a arguments) lineRange() (from, to int, refused *refusal.Error) {
	raw, ok := a["lines"]
	if !ok {
		return 0, 0, nil
	}
	var ends []json.RawMessage
	if json.Unmarshal(raw, &ends) == nil && len(ends) == 2 {
		from, first := whole(ends[0])
		to, last := whole(ends[1])
		if first && last && from >= 1 && to >= from {
			return from, to, nil
		}
	}
	return 0, 0, refuse.Failed("The argument \"lines\" must be the first and the last line, counted from 1; correct it and call again.")
}

// resolvePath finds the first root that a path is in, and the path from there. An
// absolute path may name a root also by where its symbolic links lead.
func resolvePath(roots []string, path string) (root, name string, ok bool) {
	if len(roots) == 0 {
		return "", "", false
	}
	if !filepath.IsAbs(path) {
		name = filepath.Clean(path)
		return roots[0], name, filepath.IsLocal(name)
	}
	for _, root := range roots {
		bases := []string{root}
		if real, err := filepath.EvalSymlinks(root); err == nil {
			bases = append(bases, real)
		}
		for _, base := range bases {
			if name, err := filepath.Rel(base, path); err == nil && filepath.IsLocal(name) {
				return root, name, true
			}
		}
	}
	return "", "", false
}

func openFile(root, name string) (*os.File, *refusal.Error) {
	folder, err := os.OpenRoot(root)
	if err != nil {
		return nil, refuse.Unavailable("the project's folder could not be opened: %s", fileErrorText(err))
	}
	defer func() { _ = folder.Close() }()
	// Not blocking: opening a named pipe would wait for a writer.
	file, err := folder.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, unreadableFile(err)
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, refuse.Failed("The path is not that of a file; choose a file.")
	}
	return file, nil
}

// unreadableFile never names the path, which the model wrote.
func unreadableFile(err error) *refusal.Error {
	message := "The file cannot be read; choose another."
	if errors.Is(err, fs.ErrNotExist) {
		message = "There is no such file in the project; check the path."
	}
	return refuse.Failed(message).WithCause(fmt.Errorf("a file of the project could not be opened: %s", fileErrorText(err)))
}

func fileErrorText(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return "the path leads out of the folder, or the file cannot be read"
}

// readLines returns lines from to to, and the last line that there was. It reads no
// further than needed, and stops with the context.
func readLines(ctx context.Context, call tool.Call, file io.Reader, from, to int) ([]byte, int, *refusal.Error) {
	var content []byte
	reader := bufio.NewReaderSize(file, 64<<10)
	line, last := 1, 0
	for line <= to {
		if ctx.Err() != nil {
			return nil, 0, refuse.Stopped(ctx, call)
		}
		part, err := reader.ReadSlice('\n')
		if len(part) > 0 {
			last = line
			if line >= from {
				content = append(content, part...)
			}
		}
		if int64(len(content)) > call.Run.MaxResultBytes {
			return nil, 0, refuse.ResultTooLarge(call)
		}
		switch {
		case err == nil:
			line++
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			line = to + 1
		default:
			return nil, 0, unreadableFile(err)
		}
	}
	if last < from {
		return nil, 0, refuse.Failed(fmt.Sprintf("The file has %d lines; ask for lines that it has.", last))
	}
	return content, last, nil
}
