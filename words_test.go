package callgate_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// oldNames are words that this project once used for things that have a standard term. None is part
// of an identifier or of the name of a Go file.
var oldNames = map[string]string{
	"acquaintance": "node state", "arithm": "rsa check", "burden": "cost", "cramped": "table full", "crowd": "multiset",
	"debts": "pending", "farewell": "shutdown", "feeds": "subscriptions", "feel": "health check", "flaw": "corruption",
	"fleet": "tool servers", "glance": "scanner", "headfile": "checkpoint store", "inquiry": "elicitation",
	"interruptible": "context reader", "manner": "mode", "manners": "modes", "mend": "correct", "mended": "corrected", "mending": "recovery",
	"opinion": "differential test", "paint": "color", "piles": "merge", "rouse": "ping", "seams": "test hooks",
	"secretive": "has secrets", "shield": "safe store", "sick": "failed", "sparing": "tiered", "stencil": "template",
	"stray": "unsolicited", "strays": "orphans", "taker": "subscriber", "tally": "count", "teller": "notifier",
	"tended": "reconciled", "tender": "reconciler", "tooling": "engine", "torn": "truncated",
	"twins": "duplicates", "whoever": "caller",
}

// oldNamesOfProgram are such words too, but ordinary ones in the name of a test. None is part of an
// identifier of a file that is no test.
var oldNamesOfProgram = map[string]string{
	"asked": "requested", "framed": "delimited", "opening": "start", "past": "earlier", "posted": "received",
	"said": "answer", "silent": "unanswered", "told": "notified",
}

// oldPhrases are private turns of phrase. None is in a comment, a page, or a text of the program.
var oldPhrases = regexp.MustCompile(`(?i)\b(goes on|going on|serves? on|were seen to|mend(s|ed|ing)?|whoever|whomever|that which)\b`)

// headless finds a sentence that begins with a bare what or who, and its end. A question may.
var headless = regexp.MustCompile(`(?:^|[.:;!?]\s+|^[-*|>]\s+|\| |\*\*)((?:What|Who|Whoever|Whom|That which)\s[^.?]*.?)`)

// faultsOfText are the private phrases and the sentences without a subject of a text.
func faultsOfText(text string) []string {
	text = strings.Join(strings.Fields(text), " ")
	faults := oldPhrases.FindAllString(text, -1)
	if !strings.Contains(text, "W") && !strings.Contains(text, "That") {
		return faults
	}
	for _, s := range headless.FindAllStringSubmatch(text, -1) {
		if !strings.HasSuffix(s[1], "?") {
			faults = append(faults, s[1])
		}
	}
	return faults
}

// wordsOf splits a name at underscores and at capital letters.
func wordsOf(name string) []string {
	var words []string
	before := '_'
	for _, r := range name {
		switch {
		case r == '_':
		case before == '_' || unicode.IsUpper(r) && !unicode.IsUpper(before):
			words = append(words, string(unicode.ToLower(r)))
		default:
			words[len(words)-1] += string(unicode.ToLower(r))
		}
		before = r
	}
	return words
}

// filesWith calls visit for each file of the project with one of the extensions, but for those of
// tests.
func filesWith(t *testing.T, visit func(name, text string), extensions ...string) {
	t.Helper()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(file)
		if d.IsDir() && (name != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == "dist") {
			return filepath.SkipDir
		}
		for _, e := range extensions {
			if d.IsDir() || path.Ext(name) != e {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			visit(name, string(text))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWordsOfGo: no name has an old word; comments, and texts of the program, are of sentences with
// a subject and have no private phrase.
func TestWordsOfGo(t *testing.T) {
	files := 0
	filesWith(t, func(name, text string) {
		if name == "words_test.go" {
			return
		}
		files++
		for _, w := range wordsOf(strings.TrimSuffix(path.Base(name), ".go")) {
			if standard, old := oldNames[w]; old {
				t.Errorf("%s: the name of the file has %q; expected a standard term, such as %q", name, w, standard)
			}
		}
		set := token.NewFileSet()
		file := set.AddFile(name, -1, len(text))
		var s scanner.Scanner
		s.Init(file, []byte(text), nil, scanner.ScanComments)
		comment, first, last := "", 0, -1
		finish := func() {
			for _, fault := range faultsOfText(comment) {
				t.Errorf("%s:%d: the comment has %q; expected a sentence with a subject, in standard terms", name, first, fault)
			}
			comment = ""
		}
		for {
			at, tok, literal := s.Scan()
			line := file.Line(at)
			switch tok {
			case token.COMMENT:
				if line != last+1 || strings.TrimSpace(literal) == "//" {
					finish()
					first = line
				}
				comment += "\n" + strings.TrimPrefix(literal, "//")
				last = line + strings.Count(literal, "\n")
			case token.IDENT:
				for _, w := range wordsOf(literal) {
					standard, old := oldNames[w]
					if !old && !strings.HasSuffix(name, "_test.go") {
						standard, old = oldNamesOfProgram[w]
					}
					if old {
						t.Errorf("%s:%d: %s has %q; expected a standard term, such as %q", name, line, literal, w, standard)
					}
				}
			case token.STRING:
				if strings.HasSuffix(name, "_test.go") {
					continue
				}
				for _, fault := range oldPhrases.FindAllString(literal, -1) {
					t.Errorf("%s:%d: the text has %q; expected a standard term", name, line, fault)
				}
			case token.EOF:
				finish()
				return
			}
		}
	}, ".go")
	if files < 1000 {
		t.Errorf("found only %d files", files)
	}
}

// TestWordsOfPages: pages, and comments of configuration files, are of sentences with a subject and
// have no private phrase. Headings may be clauses.
func TestWordsOfPages(t *testing.T) {
	heading := regexp.MustCompile(`(?m)^#{1,6} .*$`)
	item := regexp.MustCompile(`(?m)^\s*([-*>]|\d+\.|\|)`)
	for page, m := range pages(t) {
		prose := item.ReplaceAllString(heading.ReplaceAllString(m.prose, ""), "\n\n$1")
		for _, paragraph := range strings.Split(prose, "\n\n") {
			for _, fault := range faultsOfText(paragraph) {
				t.Errorf("%s has %q; expected a sentence with a subject, in standard terms", page, fault)
			}
		}
	}
	comment := regexp.MustCompile(`(?m)^\s*#+ ?`)
	filesWith(t, func(name, text string) {
		if strings.HasPrefix(name, "test/") {
			return
		}
		var comments []string
		for line := range strings.Lines(text) {
			if comment.MatchString(line) {
				comments = append(comments, comment.ReplaceAllString(line, ""))
			} else {
				comments = append(comments, "\n")
			}
		}
		for _, paragraph := range strings.Split(strings.Join(comments, ""), "\n\n") {
			for _, fault := range faultsOfText(paragraph) {
				t.Errorf("%s has %q; expected a sentence with a subject, in standard terms", name, fault)
			}
		}
	}, ".yaml", ".yml", ".csv")
}

// TestFaultsOfText: the faults of texts are found, and questions, headings and clauses within a
// sentence are none.
func TestFaultsOfText(t *testing.T) {
	for text, want := range map[string]string{
		"What it sends is kept.":                      "What it sends is kept.",
		"lookUp finds it. What it returns\nmust stay": "What it returns must stay",
		"- Who asks is told.":                         "Who asks is told.",
		"The log goes on.":                            "goes on",
		"Whoever counts":                              "Whoever|Whoever counts",
		"| a | What is it? |":                         "",
		"What is a call? It is one.":                  "",
		"It knows what it sends, and who asks.":       "",
		"A record of whatever was sent.":              "",
	} {
		if got := strings.Join(faultsOfText(text), "|"); got != want {
			t.Errorf("%q: found %q, expected %q", text, got, want)
		}
	}
	if got := strings.Join(wordsOf("TestHTTPToolsAre_Told2"), " "); got != "test httptools are told2" {
		t.Errorf("split into %q", got)
	}
}
