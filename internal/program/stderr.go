package program

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/callgate/callgate/wrapper"
)

// maxLine bounds the bytes of one line of a program's standard error.
const maxLine = 4 << 10

// EachLine passes on the lines of a program's standard error until that ends. Empty ones are left
// out, longer ones are split, and no character hides or moves the cursor: such ones are written as
// their escapes, and bytes that are not UTF-8 as U+FFFD.
func EachLine(from io.Reader, pass func(line string)) {
	in := bufio.NewReaderSize(from, maxLine)
	for {
		part, err := in.ReadSlice('\n')
		if part = bytes.TrimRight(part, "\r\n"); len(part) > 0 {
			pass(escape(part))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func escape(line []byte) string {
	text := wrapper.EscapeText(strings.ToValidUTF8(string(line), "\uFFFD"))
	return strings.ReplaceAll(text, "\r", `\u000d`)
}
