package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// scanned is what a reader returns for some bytes: its events, then its error.
func scanned(from io.Reader, most int) (all []string) {
	r := Reader{Source: from, MaxBytes: most, Last: func(data []byte) bool { return string(data) == "[DONE]" }}
	for {
		name, data, err := r.Next()
		switch {
		case errors.Is(err, ErrEnd):
			return append(all, "EOF")
		case errors.Is(err, ErrCut):
			return append(all, "cut")
		case errors.Is(err, ErrTooLarge):
			return append(all, "oversize")
		case err != nil:
			return append(all, "error")
		}
		all = append(all, fmt.Sprintf("%s=%s", name, data))
	}
}

var grammar = map[string]struct {
	in   string
	want []string
}{
	"one event":                          {"data: a\n\n", []string{"=a", "EOF"}},
	"CR":                                 {"data: a\r\rdata: b\r\r", []string{"=a", "=b", "EOF"}},
	"CRLF":                               {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"=a", "=b", "EOF"}},
	"all ends of lines":                  {"data: a\rdata: b\ndata: c\r\n\n", []string{"=a\nb\nc", "EOF"}},
	"LF after CR is one end, LF CR two":  {"data: a\n\rdata: b\n\r", []string{"=a", "=b", "EOF"}},
	"no space, one space, two":           {"data:a\n\ndata: a\n\ndata:  a\n\n", []string{"=a", "=a", "= a", "EOF"}},
	"several data lines":                 {"data: a\ndata:\ndata: b\n\n", []string{"=a\n\nb", "EOF"}},
	"data without a colon":               {"data\n\n", []string{"=", "EOF"}},
	"empty data":                         {"data:\n\n", []string{"=", "EOF"}},
	"comments":                           {": ping\n\n:\n\ndata: a\n: within\n\n", []string{"=a", "EOF"}},
	"a name":                             {"event: error\ndata: a\n\ndata: b\n\n", []string{"error=a", "=b", "EOF"}},
	"a name without data":                {"event: x\n\ndata: a\n\n", []string{"=a", "EOF"}},
	"the last name":                      {"event: x\nevent: y\ndata: a\n\n", []string{"y=a", "EOF"}},
	"id, retry and unknown fields":       {"id: 1\nretry: 5\nfoo: bar\nDATA: x\n data: y\ndata: a\n\n", []string{"=a", "EOF"}},
	"a byte order mark":                  {"\ufeffdata: a\n\n", []string{"=a", "EOF"}},
	"a second byte order mark":           {"\ufeff\ufeffdata: a\n\ndata: b\n\n", []string{"=b", "EOF"}},
	"nothing":                            {"", []string{"EOF"}},
	"empty lines":                        {"\n\r\n\r\n\n", []string{"EOF"}},
	"the end within data":                {"data: a", []string{"cut"}},
	"the end after a line":               {"data: a\n", []string{"cut"}},
	"the end after CR":                   {"data: a\r", []string{"cut"}},
	"the end after CRLF":                 {"data: a\r\n", []string{"cut"}},
	"the end within a name of a field":   {"data: a\n\ndat", []string{"=a", "cut"}},
	"the end within an unknown field":    {"data: a\n\nid: 1", []string{"=a", "cut"}},
	"the end within a comment":           {"data: a\n\n: pi", []string{"=a", "EOF"}},
	"the end after a comment within one": {"data: a\n: pi", []string{"cut"}},
	"the end after an empty name":        {"event: x\n", []string{"EOF"}},
	"[DONE] without an empty line":       {"data: a\n\ndata: [DONE]\n", []string{"=a", "=[DONE]", "EOF"}},
	"[DONE] without an end of line":      {"data: a\n\ndata:[DONE]", []string{"=a", "=[DONE]", "EOF"}},
	"[DONE] in part":                     {"data: a\n\ndata: [DON", []string{"=a", "cut"}},
	"[DONE] after other data":            {"data: a\ndata: [DONE]", []string{"cut"}},
	"invalid UTF-8 is data":              {"data: \xff\n\n", []string{"=\xff", "EOF"}},
	"NUL is data":                        {"data: \x00\n\n", []string{"=\x00", "EOF"}},
}

func TestGrammar(t *testing.T) {
	for why, c := range grammar {
		if got := scanned(strings.NewReader(c.in), 1<<10); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %q, expected %q", why, got, c.want)
		}
	}
}

// pieces reads in the lengths of a list, the rest at once.
type pieces struct {
	b   []byte
	cut []int
}

func (p *pieces) Read(into []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := len(p.b)
	if len(p.cut) > 0 {
		n, p.cut = min(n, p.cut[0]), p.cut[1:]
	}
	n = copy(into, p.b[:n])
	p.b = p.b[n:]
	return n, nil
}

func TestCutsChangeNothing(t *testing.T) {
	for why, c := range grammar {
		for i := range len(c.in) {
			for j := range len(c.in) - i {
				if got := scanned(&pieces{[]byte(c.in), []int{i, j}}, 1<<10); !slices.Equal(got, c.want) {
					t.Fatalf("%s, cut at %d and %d: found %q, expected %q", why, i, i+j, got, c.want)
				}
			}
		}
		for name, from := range map[string]io.Reader{
			"1 byte":        iotest.OneByteReader(strings.NewReader(c.in)),
			"data with EOF": iotest.DataErrReader(strings.NewReader(c.in)),
		} {
			if got := scanned(from, 1<<10); !slices.Equal(got, c.want) {
				t.Errorf("%s, %s: found %q, expected %q", why, name, got, c.want)
			}
		}
	}
}

// FuzzCuts holds that a reader gives the same for every way of cutting.
func FuzzCuts(f *testing.F) {
	for _, c := range grammar {
		f.Add([]byte(c.in), uint64(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		const most = 64
		want := scanned(bytes.NewReader(b), most)
		random := rand.New(rand.NewPCG(seed, 0))
		var cut []int
		for range len(b) {
			cut = append(cut, random.IntN(9))
		}
		if got := scanned(&pieces{b, cut}, most); !slices.Equal(got, want) {
			t.Errorf("found %q, expected %q", got, want)
		}
		if got := scanned(iotest.OneByteReader(bytes.NewReader(b)), most); !slices.Equal(got, want) {
			t.Errorf("byte by byte: found %q, expected %q", got, want)
		}
	})
}

func TestLongLines(t *testing.T) {
	const most = 100_000 // several times the buffer
	fits := strings.Repeat("x", most-len("data: "))
	for why, c := range map[string]struct {
		in   string
		want []string
	}{
		"a line of the longest":       {"data: " + fits + "\n\n", []string{"=" + fits, "EOF"}},
		"a byte more":                 {"data: a\n\ndata: " + fits + "x\n\n", []string{"=a", "oversize"}},
		"without an end":              {"data: a\n\ndata: " + fits + "xx", []string{"=a", "oversize"}},
		"a comment":                   {":" + fits + fits, []string{"oversize"}},
		"an event of many lines":      {strings.Repeat("data: "+fits[:most/4]+"\n", 5) + "\n", []string{"oversize"}},
		"many events, each of a size": {strings.Repeat("data: "+fits[:most/4]+"\n\n", 5), append(slices.Repeat([]string{"=" + fits[:most/4]}, 5), "EOF")},
	} {
		for name, from := range map[string]io.Reader{"whole": strings.NewReader(c.in), "half": iotest.HalfReader(strings.NewReader(c.in))} {
			if got := scanned(from, most); !slices.Equal(got, c.want) {
				t.Errorf("%s, %s: found %.80q", why, name, got)
			}
		}
	}
}

func TestBrokenConnectionIsNoEnd(t *testing.T) {
	from := io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(errors.New("reset")))
	if got := scanned(from, 100); !slices.Equal(got, []string{"=a", "error"}) {
		t.Errorf("found %q", got)
	}
	from = io.MultiReader(strings.NewReader("data: a\n\n"), iotest.ErrReader(fmt.Errorf("reset: %w", io.EOF)))
	if got := scanned(from, 100); !slices.Equal(got, []string{"=a", "error"}) {
		t.Errorf("found %q", got)
	}
}

// TestRelease: a released reader reads nothing more, and what a reader that has its buffer
// reads is its own.
func TestRelease(t *testing.T) {
	for i := range 100 {
		first := Reader{Source: strings.NewReader("data: one\n\ndata: more\n\n"), MaxBytes: 100}
		if _, data, err := first.Next(); err != nil || string(data) != "one" {
			t.Fatal(i, string(data), err)
		}
		first.Release()
		if _, data, err := first.Next(); err == nil {
			t.Fatalf("a released reader has read %q", data)
		}
		second := Reader{Source: strings.NewReader("data: two\n\n"), MaxBytes: 100}
		if _, data, err := second.Next(); err != nil || string(data) != "two" {
			t.Fatal(i, string(data), err)
		}
		if _, data, err := second.Next(); !errors.Is(err, ErrEnd) {
			t.Fatal(string(data), err)
		}
		second.Release()
	}
}

// TestLast holds that an event for which Last reports true needs no empty line behind it.
func TestLast(t *testing.T) {
	for in, want := range map[string]string{"data: a\n\ndata: end": "a end", "data: a\n\ndata: end\n": "a end", "data: a\n\ndata: en": "a cut", "data: a\ndata: end": "cut"} {
		r := Reader{Source: strings.NewReader(in), MaxBytes: 100, Last: func(data []byte) bool { return string(data) == "end" }}
		var got []string
		for {
			_, data, err := r.Next()
			if errors.Is(err, ErrCut) {
				got = append(got, "cut")
			}
			if err != nil {
				break
			}
			got = append(got, string(data))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, expected %s", in, got, want)
		}
	}
}

// TestPartial: what is left of a stream that stands still is the beginning of an event, but for a comment.
func TestPartial(t *testing.T) {
	for rest, want := range map[string]bool{"": false, ": he": false, ":": false, ": here\n\n": false, "data: {": true, "data: {}\n": true, "event: x\n": true, "d": true} {
		r := &Reader{Source: io.MultiReader(strings.NewReader("data: {}\n\n"+rest), iotest.ErrReader(errors.New("stalled"))), MaxBytes: 100}
		_, _, err := r.Next()
		for err == nil {
			_, _, err = r.Next()
		}
		if got := r.Partial(); got != want {
			t.Errorf("%q: found %v", rest, got)
		}
	}
}
