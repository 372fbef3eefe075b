package window

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exprs are of all forms: alternatives by order, lazy and greedy, ends, boundaries, runes.
var exprs = []string{
	`abc`, `ab|abc`, `abc|ab`, `a+`, `a+?b`, `a[ab]*b`, `(?s)ab.*?(?:ba|\z)`, `\bab\b`, `ab\b|a`, `^ab`, `(?m)^ab$`, `ab\z`,
	`(?i)ab{2,3}`, `é+b`, `[^a]b`, `(?s)a.{3}b`, `aa`, `a.*b|a`, `\Bb`, `ba|abba`, `(a|ab)(c|bcd)?`, `[^ -~]{2}`, `(?:ab){2}|b\n`,
}

func scannerOf(t testing.TB, expr string, by string) *Scanner {
	t.Helper()
	e, err := Compile(expr)
	if err != nil {
		t.Fatal(err)
	}
	if by == "" {
		return NewScanner(e, nil)
	}
	return NewScanner(e, []byte(by))
}

// cut cuts a text into pieces: each byte of cuts is the length of one.
func cut(text, cuts []byte) [][]byte {
	var all [][]byte
	for _, c := range cuts {
		n := min(int(c)%8, len(text))
		all, text = append(all, text[:n]), text[n:]
	}
	return append(all, text)
}

// through takes a text in pieces through a scanner, and calls seen with all that is out so far, after
// each of them.
func through(t testing.TB, s *Scanner, pieces [][]byte, seen func(read int, out []byte)) (all []Piece, found bool) {
	t.Helper()
	var out []byte
	read := 0
	for i := range len(pieces) + 1 {
		var some []Piece
		var err error
		if i < len(pieces) {
			read += len(pieces[i])
			some, found, err = s.Write([]Piece{{pieces[i], len(pieces[i])}})
		} else {
			some, found, err = s.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		if found {
			return all, true
		}
		all, out = append(all, some...), append(out, Join(some)...)
		seen(read, out)
	}
	return all, false
}

// holds checks a text under an expression: what comes out is what the expression leaves of the whole,
// and whatever is out at a time stands at the beginning of what it leaves, however the text continues.
func holds(t testing.TB, expr string, text, cuts []byte) {
	t.Helper()
	const by = "<gone>"
	whole := regexp.MustCompile(expr)
	want := whole.ReplaceAllLiteral(text, []byte(by))
	rests := [][]byte{[]byte("b"), []byte("bba\n"), []byte("abcdbb")}
	before := 0
	all, _ := through(t, scannerOf(t, expr, by), cut(text, cuts), func(read int, out []byte) {
		if len(out) == before || read == len(text) { // it may be at its end
			return
		}
		before = len(out)
		for _, rest := range rests {
			could := whole.ReplaceAllLiteral(slices.Concat(text[:read], rest), []byte(by))
			if !bytes.HasPrefix(could, out) {
				t.Fatalf("%s: after %q, %q was out; with %q behind it, %q is right", expr, text[:read], out, rest, could)
			}
		}
	})
	if got := Join(all); !bytes.Equal(got, want) {
		t.Fatalf("%s: %q in %v became %q, expected %q", expr, text, cuts, got, want)
	}
	of := 0
	for _, p := range all {
		of += p.Of
	}
	if of != len(text) {
		t.Fatalf("%s: the pieces of %q stand for %d bytes", expr, text, of)
	}
	end := len(text)
	if at := whole.FindIndex(text); at != nil {
		end = at[0]
	}
	_, found := through(t, scannerOf(t, expr, ""), cut(text, cuts), func(_ int, out []byte) {
		if !bytes.HasPrefix(text[:end], out) {
			t.Fatalf("%s: %q of %q was out before the match", expr, out, text)
		}
	})
	if found != whole.Match(text) {
		t.Fatalf("%s: found in %q: %v", expr, text, found)
	}
}

// TestEverySplit: random texts in random pieces, under each expression.
func TestEverySplit(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	letters := []string{"a", "b", "c", "d", " ", "\n", "é", "A", "ab", "\xff", "\u2028"}
	for _, expr := range exprs {
		for range 15 {
			var text, cuts []byte
			for range random.IntN(24) {
				text = append(text, letters[random.IntN(len(letters))]...)
				cuts = append(cuts, byte(random.IntN(8)))
			}
			holds(t, expr, text, cuts)
		}
	}
}

func FuzzScanner(f *testing.F) {
	for i := range exprs {
		f.Add(byte(i), []byte("xx abab\nabc aab é"), []byte{1, 2, 3, 1, 1, 4})
	}
	f.Fuzz(func(t *testing.T, which byte, text, cuts []byte) {
		if len(text) < 1<<12 {
			holds(t, exprs[int(which)%len(exprs)], text, cuts)
		}
	})
}

// FuzzExpr: any expression that regexp takes.
func FuzzExpr(f *testing.F) {
	for _, expr := range exprs {
		f.Add(expr, []byte("xx abab\nabc aab é"), []byte{1, 2, 3, 1, 1, 4})
	}
	f.Fuzz(func(t *testing.T, expr string, text, cuts []byte) {
		e, err := Compile(expr)
		if _, fault := regexp.Compile(expr); (err == nil) != (fault == nil) {
			t.Fatalf("%q: %v, %v", expr, err, fault)
		}
		if err == nil && !e.CanBeEmpty() && len(expr) < 50 && len(text) < 256 && len(e.prog.Inst) < 1000 {
			holds(t, expr, text, cuts)
		}
	})
}

// TestNothingIsHeld: text that can begin no match comes out at once.
func TestNothingIsHeld(t *testing.T) {
	s := scannerOf(t, `key-[a-z]+!`, "<gone>")
	for _, step := range []struct{ in, out string }{
		{"hello wor", "hello wor"}, {"ld ke", "ld "}, {"y", ""}, {"-", ""}, {"abc", ""}, {"?", "key-abc?"}, {" key-x", " "}, {"!", ""}, {".", "<gone>."}, {"\xc3", ""}, {"\xa9", "é"},
	} {
		out, found, err := s.Write([]Piece{{[]byte(step.in), len(step.in)}})
		if got := string(Join(out)); got != step.out || found || err != nil {
			t.Errorf("%q: %q, %v, %v", step.in, got, found, err)
		}
	}
}

func TestChained(t *testing.T) {
	first, second := scannerOf(t, `a+`, "[xx]"), scannerOf(t, `xx]b|c`, "[redacted]")
	var all []Piece
	for _, in := range []string{"1aa", "ab2", "c3"} {
		out, _, err := first.Write([]Piece{{[]byte(in), len(in)}})
		if err != nil {
			t.Fatal(err)
		}
		if out, _, err = second.Write(out); err != nil {
			t.Fatal(err)
		}
		all = append(all, out...)
	}
	rest, _, _ := first.Close()
	out, _, _ := second.Write(rest)
	all = append(all, out...)
	out, _, _ = second.Close()
	all = append(all, out...)
	if got := string(Join(all)); got != "1[[redacted]2[redacted]3" {
		t.Errorf("%s", got)
	}
	parts := Divide(all, []int{2, 0, 1, 3, 2})
	if got := fmt.Sprintf("%q", parts); got != `["1[" "" "" "[redacted]2" "[redacted]3"]` {
		t.Errorf("%s", got)
	}
}

// TestWork: an expression under which a text would be read again for each of its bytes.
func TestWork(t *testing.T) {
	s := scannerOf(t, `a.*b|a`, "-")
	text := []byte(strings.Repeat("a", 1<<14))
	if _, _, err := s.Write([]Piece{{text, len(text)}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Close(); err != ErrWork {
		t.Errorf("found %v", err)
	}
}

func TestCanBeEmpty(t *testing.T) {
	for expr, want := range map[string]bool{`a*`: true, `\b`: true, `a|\z`: true, `a`: false, `(?:a|b)+\b`: false, `(?m)^`: true, `^a$`: false} {
		if e, err := Compile(expr); err != nil || e.CanBeEmpty() != want {
			t.Errorf("%s: %v, %v", expr, e, err)
		}
	}
	if _, err := Compile(`(`); err == nil {
		t.Error("no expression is taken for one")
	}
}

func BenchmarkScanner(b *testing.B) {
	text := []byte(strings.Repeat("The quick brown fox jumps over the lazy dog. ", 100))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s := scannerOf(b, `gh[pousr]_[A-Za-z0-9]{36,}`, "-")
		if _, _, err := s.Write([]Piece{{text, len(text)}}); err != nil {
			b.Fatal(err)
		}
	}
}
