package mcp

import (
	"bufio"
	"bytes"
	"errors"

	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/tool"
)

// readLines reads the program's output to its end.
func (l *local) readLines() {
	defer safe.Catch(func(panicked error) { l.fail(refuse.Reason(panicked.Error())) })
	lines := bufio.NewReaderSize(l.program.Output, maxEnvelope)
	for {
		line, g, err := l.readLine(lines)
		if err != nil {
			var text refuse.Reason
			if errors.As(err, &text) {
				l.fail(&tool.InvalidListError{Err: text})
				return
			}
			// The last line may be whole without its end.
			if m, err := readMessage(line); err == nil {
				_ = l.handleMessage(m, line)
			}
			l.fail(l.errors.exitError())
			return
		}
		l.mu.Lock()
		l.linesRead++
		l.silent = false
		l.mu.Unlock()
		if g != nil {
			l.completeTooLarge(g)
			continue
		}
		if line = bytes.TrimRight(line, "\r"); len(line) == 0 {
			continue
		}
		if err := l.handleLine(line); err != nil {
			l.fail(err)
			return
		}
	}
}

// completeTooLarge ends the request that a line answers which is too long. It ends no other.
func (l *local) completeTooLarge(g *idScanner) {
	if id, ok := g.id(); ok {
		l.complete(id, 0, &reply{tooLarge: true})
	}
}

// readLine reads a line without its end. If the line is longer than any pending response
// may be, only its scan is returned. At the end of the output, the line is what came without an end, if that is not too long.
func (l *local) readLine(lines *bufio.Reader) (line []byte, g *idScanner, err error) {
	read := 0
	for {
		part, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if g == nil {
				line = append(line, part...)
			}
			return line, nil, err
		}
		whole := err == nil
		if whole {
			part = part[:len(part)-1]
		}
		limit := l.lineLimit()
		if read += len(part); g == nil && int64(read) > limit {
			g = &idScanner{}
			g.scan(line)
			line = nil
		}
		switch {
		case g == nil:
			line = append(line, part...)
		case int64(read) > limit+maxLine:
			l.completeTooLarge(g)
			return nil, nil, errTooLarge
		default:
			g.scan(part)
		}
		if whole {
			return line, g, nil
		}
	}
}

// lineLimit is the length that a line may have: that of the longest pending response.
func (l *local) lineLimit() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := int64(minLine)
	for _, w := range l.waiting {
		limit = max(limit, w.limit)
	}
	return limit
}
