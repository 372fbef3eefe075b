package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// withCandidate is the configuration of the vectors with a candidate.
func withCandidate(t *testing.T, key string, files map[string]string) (main string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "testdata", "vectors", "config"))); err != nil {
		t.Fatal(err)
	}
	main = filepath.Join(dir, "callgate.yaml")
	text, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	files[main] = strings.Replace(string(text), "# end", "candidate: "+key+"\n# end", 1)
	for name, content := range files {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return main
}

func TestCandidate(t *testing.T) {
	main := withCandidate(t, "{policy: next.csv}", map[string]string{"next.csv": "p, Analyst, acme/alpha, web.*, , allow\n# end\n"})
	c, err := Load(main)
	if err != nil {
		t.Fatal(err)
	}
	if c.CandidateFault != nil || c.Candidate == nil || len(c.Candidate.Policy.Rows()) != 1 || len(c.Policy.Rows()) < 5 {
		t.Fatalf("found %v, %v; expected a candidate with one row", c.Candidate, c.CandidateFault)
	}
	if len(c.Candidate.Tools.Entries()) != len(c.Tools.Entries()) || c.Candidate.DataDir != c.DataDir || c.Candidate.Candidate != nil {
		t.Errorf("the candidate differs in more than its policy: %v", c.Candidate)
	}
	if c.Digest == c.Candidate.Digest || !strings.HasSuffix(c.Files[len(c.Files)-1], "next.csv") {
		t.Errorf("the candidate's file is not one of %v", c.Files)
	}
	// An edit of the candidate is noticed.
	if err := os.WriteFile(filepath.Join(filepath.Dir(main), "next.csv"), []byte("# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := Load(main)
	if err != nil || again.Digest == c.Digest || again.Candidate.Digest == c.Candidate.Digest {
		t.Errorf("found %v, %v; expected other digests", again, err)
	}
}

// A candidate that does not load is a warning, with its file and line; what is served loads.
func TestCandidateThatDoesNotLoad(t *testing.T) {
	for name, c := range map[string]struct{ key, file, warning string }{
		"a wrong row":    {"{policy: next.csv}", "p, Analyst, acme/alpha, web.*, , alow\n# end\n", "next.csv:1"},
		"cut":            {"{policy: next.csv}", "p, Analyst, acme/al", "next.csv"},
		"absent":         {"{policy: nowhere.csv}", "# end\n", "nowhere.csv"},
		"unknown rule":   {"{policy: next.csv}", "p, Analyst, acme/alpha, web.*, , ask:nobody\n# end\n", "nobody"},
		"no tool":        {"{registry: {files: [none/*.yaml]}}", "# end\n", "none/*.yaml"},
		"wrong approval": {"{approvals: next.csv}", "rules: {a: {approve: 0}}\n# end\n", "next.csv"},
	} {
		t.Run(name, func(t *testing.T) {
			loaded, err := Load(withCandidate(t, c.key, map[string]string{"next.csv": c.file}))
			if err != nil {
				t.Fatal(err)
			}
			if loaded.Candidate != nil || loaded.CandidateFault == nil {
				t.Errorf("found %v, %v; expected a fault", loaded.Candidate, loaded.CandidateFault)
			}
			said := false
			for _, w := range loaded.Warnings {
				said = said || strings.Contains(w.Error(), "the candidate does not load") && strings.Contains(w.Error(), c.warning)
			}
			if !said {
				t.Errorf("found the warnings %v; expected one of %s", loaded.Warnings, c.warning)
			}
		})
	}
}

// The key itself is as strict as all others.
func TestCandidateKeys(t *testing.T) {
	for _, key := range []string{"{polcy: next.csv}", "next.csv", "{limits: next.yaml}", "{policy: [next.csv]}", "{candidate: {policy: next.csv}}"} {
		if _, err := Load(withCandidate(t, key, map[string]string{"next.csv": "# end\n"})); err == nil || !strings.Contains(err.Error(), "callgate.yaml:") {
			t.Errorf("%s: found %v; expected a fault with its line", key, err)
		}
	}
}

// Two edits at once, each of them saved halfway or not: the served configuration is whole or a fault,
// and the candidate beside it is whole or absent with its fault, never that of before.
func TestCandidateBesideAnotherEdit(t *testing.T) {
	const row, end = "p, Analyst, acme/alpha, web.*, , allow\n", "# end\n"
	for name, c := range map[string]struct {
		served, next string
		loads, has   bool
	}{
		"both whole":          {row + end, row + row[:3] + "Intern" + row[10:] + end, true, true},
		"candidate halfway":   {row + end, row, true, false},
		"candidate empty":     {row + end, "", true, false},
		"served halfway":      {row, row + end, false, false},
		"both halfway":        {row, row[:20], false, false},
		"candidate is no row": {row + end, "p, Analyst\n" + end, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			main := withCandidate(t, "{policy: next.csv}", map[string]string{"next.csv": row + end, "policy.csv": end})
			first, err := Load(main)
			if err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{"policy.csv": c.served, "next.csv": c.next} {
				if err := os.WriteFile(filepath.Join(filepath.Dir(main), file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			again, err := Load(main)
			if (err == nil) != c.loads {
				t.Fatalf("found %v", err)
			}
			if err != nil {
				if strings.Contains(err.Error(), "next.csv") {
					t.Errorf("%v blames the candidate", err)
				}
				return
			}
			if len(again.Policy.Rows()) != 1 || again.Digest == first.Digest {
				t.Errorf("the served policy has %d rows", len(again.Policy.Rows()))
			}
			if (again.Candidate != nil) != c.has || (again.CandidateFault == nil) != c.has {
				t.Errorf("found the candidate %v with the fault %v", again.Candidate != nil, again.CandidateFault)
			}
			if c.has && len(again.Candidate.Policy.Rows()) != 2 {
				t.Errorf("the candidate has %d rows", len(again.Candidate.Policy.Rows()))
			}
		})
	}
}
