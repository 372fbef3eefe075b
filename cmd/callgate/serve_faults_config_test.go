package main

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
)

// goodPolicy is what a gateway of these tests serves.
const goodPolicy = "p, Analyst, acme/alpha, *, , allow\n# end\n"

// badPolicies are files that must not be served, also not in part: each of them
// would let pass, or refuse, something else than what is meant.
var badPolicies = map[string]string{
	"empty":             "",
	"cut in a row":      goodPolicy[:20],
	"cut before # end":  strings.TrimSuffix(goodPolicy, "# end\n"),
	"cut in # end":      strings.TrimSuffix(goodPolicy, "end\n"),
	"more behind # end": goodPolicy + "p, Intern, *, *, , allow\n",
	"binary":            "\x7fELF\x02\x01\x01\x00\x00\x00\n# end\n",
	"no UTF-8":          "p, Ana\xfflyst, acme/alpha, *, , allow\n# end\n",
	"byte order mark":   "\ufeff" + goodPolicy,
	"carriage returns":  strings.ReplaceAll(goodPolicy, "\n", "\r"),
	"a long line":       "p, Analyst, acme/alpha, " + strings.Repeat("x", 70<<10) + ", , allow\n# end\n",
	"effect typo":       strings.Replace(goodPolicy, "allow", "dney", 1),
	"five fields":       strings.Replace(goodPolicy, ", ,", ",", 1),
	"unknown row":       "q, Analyst, acme/alpha, *, , allow\n# end\n",
	"not a condition":   strings.Replace(goodPolicy, "*, ,", "*, true || , ", 1),
	"yaml":              "p: [Analyst]\n# end\n",
	"breaks its tests":  strings.Replace(goodPolicy, "allow", "deny", 1),
	"another program's": "<html><body>404</body></html>\n",
}

// TestBadPolicies saves files that must not be served over the policy of a gateway that
// serves: it keeps serving the old one, and reports the fault with file and line. None of
// them lets a gateway start.
func TestBadPolicies(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newRecordingTool())
	defer server.Close()
	config, data := effectsConfig(t, server.URL, "tests: [policy_test.yaml]\n")
	policy := filepath.Join(filepath.Dir(config), "policy.csv")
	const tests = "tests: [{name: analysts read, agent: Analyst, project: acme/alpha, tool: read, expect: always}]\n# end\n"
	if err := os.WriteFile(filepath.Join(filepath.Dir(config), "policy_test.yaml"), []byte(tests), 0o600); err != nil {
		t.Fatal(err)
	}
	save := func(text string) {
		t.Helper()
		if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save(goodPolicy)
	g := serveGate(t, config)
	served := g.operators(t).Digest
	serves := func(name string) {
		t.Helper()
		if r := g.callRetrying(t, numbered("read", 1)); !isResult(r) {
			t.Errorf("%s: a call is answered with %d %s", name, r.status, r.body)
		}
		if o := g.operators(t); o.Digest != served || !o.Ready {
			t.Errorf("%s: %+v is served", name, o)
		}
	}
	saved := slices.Sorted(maps.Keys(badPolicies))
	if os.Getenv(longFaults) == "" {
		saved = []string{"another program's", "binary", "breaks its tests", "cut before # end", "effect typo", "empty"}
	}
	for _, name := range saved {
		save(badPolicies[name])
		eventually(t, name+": the fault is told", func() bool {
			faults := g.operators(t).Faults
			return len(faults) > 0 && strings.Contains(faults[0], "policy.csv:") && g.counts(t, "callgate_config_failed", "1")
		})
		serves(name)
		save(goodPolicy)
		eventually(t, name+": the fault is over", func() bool {
			return len(g.operators(t).Faults) == 0 && g.counts(t, "callgate_config_failed", "0")
		})
		serves(name)
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	if n := strings.Count(g.stderr.String(), "configuration reload failed; keeping the current one"); n < len(saved) {
		t.Errorf("the log tells %d of %d failures", n, len(saved))
	}
	readLedger(t, data)
	for name, text := range badPolicies {
		save(text)
		if code, stdout, stderr := command(t, nil, "serve", "--config", config); code != exitUsage || stdout != "" || !strings.Contains(stderr, "policy.csv:") {
			t.Errorf("%s, at the start: exit code %d: %s%s", name, code, stdout, stderr)
		}
	}
	t.Logf("%d files, none of which was served, and %d, none of which let a gateway start", len(saved), len(badPolicies))
}

// TestPolicyIsWrittenInPieces writes a longer policy over the one that is served,
// a piece at a time, and lets go in the middle. No part of it is served.
func TestPolicyIsWrittenInPieces(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newRecordingTool())
	defer server.Close()
	config, data := effectsConfig(t, server.URL, "")
	policy := filepath.Join(filepath.Dir(config), "policy.csv")
	// A part of it lacks the rule that forbids, which stands last.
	allowed := "p, Analyst, acme/alpha, *, , allow\n"
	whole := strings.Repeat("# a comment\n", 800) + allowed + strings.Repeat("# a comment\n", 800) + "p, Analyst, acme/alpha, once, , deny\n# end\n"
	if err := os.WriteFile(policy, []byte("p, Analyst, acme/alpha, once, , deny\np, Analyst, acme/alpha, read, , allow\n# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := serveGate(t, config)
	before := g.operators(t).Digest
	forbidden := func(when string) {
		t.Helper()
		if r := g.call(t, numbered("once", 1)); r.code() != "permission_denied" {
			t.Errorf("%s: what every version forbids is answered with %d %s", when, r.status, r.body)
		}
	}
	write := func(pieces int) {
		f, err := os.OpenFile(policy, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for i := range pieces {
			if _, err := f.WriteString(whole[i*len(whole)/8 : (i+1)*len(whole)/8]); err != nil {
				t.Fatal(err)
			}
			forbidden(fmt.Sprintf("with %d of 8 pieces", i+1))
			time.Sleep(30 * time.Millisecond)
		}
	}
	write(7) // the writer was killed
	eventually(t, "the fault is told", func() bool { return len(g.operators(t).Faults) > 0 })
	forbidden("with a part of it")
	if o := g.operators(t); o.Digest != before {
		t.Errorf("a part is served: %+v", o)
	}
	write(8)
	eventually(t, "the whole is served", func() bool { o := g.operators(t); return o.Digest != before && len(o.Faults) == 0 })
	forbidden("with the whole")
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	verified(t, data)
}

// TestPolicyGoesAway deletes the policy, puts a folder in its place, exchanges it by a
// rename and by links, as Kubernetes does. A missing file changes nothing; a new one is
// served.
func TestPolicyGoesAway(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newRecordingTool())
	defer server.Close()
	config, data := effectsConfig(t, server.URL, "")
	dir := filepath.Dir(config)
	policy := filepath.Join(dir, "policy.csv")
	texts := []string{goodPolicy, "p, Analyst, acme/alpha, once, , deny\np, Analyst, acme/alpha, read, , allow\n# end\n"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(policy, []byte(texts[0]), 0o600))
	g := serveGate(t, config)
	allowed := func() bool { return isResult(g.callRetrying(t, numbered("once", 1))) }
	fails := func(when string) {
		t.Helper()
		eventually(t, when+": the fault is told", func() bool { return len(g.operators(t).Faults) > 0 && g.counts(t, "callgate_config_failed", "1") })
	}
	must(os.Remove(policy))
	fails("deleted")
	if !allowed() {
		t.Error("without its file, the policy is not served any more")
	}
	must(os.Mkdir(policy, 0o700))
	fails("a folder")
	must(os.Remove(policy))
	// A link to a folder that is exchanged by renaming another link over it.
	for i, text := range texts {
		of := filepath.Join(dir, fmt.Sprint("..version-", i))
		must(os.Mkdir(of, 0o700))
		must(os.WriteFile(filepath.Join(of, "policy.csv"), []byte(text), 0o600))
	}
	must(os.Symlink("..version-0", filepath.Join(dir, "..data")))
	must(os.Symlink(filepath.Join("..data", "policy.csv"), policy))
	eventually(t, "the link is followed", func() bool { return len(g.operators(t).Faults) == 0 && allowed() })
	must(os.Symlink("..version-1", filepath.Join(dir, "..next")))
	must(os.Rename(filepath.Join(dir, "..next"), filepath.Join(dir, "..data")))
	eventually(t, "the links lead elsewhere", func() bool { return !allowed() })
	must(os.WriteFile(policy+".new", []byte(texts[0]), 0o600))
	must(os.Rename(policy+".new", policy))
	eventually(t, "a file that was renamed is served", allowed)
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	readLedger(t, data)
}

// TestReloadsUnderLoad exchanges the tools of a gateway under load. Every decision
// was made by one configuration: the version of the tool that its record names is
// the one that the configuration has whose digest it names.
func TestReloadsUnderLoad(t *testing.T) {
	t.Parallel()
	tool := newRecordingTool()
	server := httptest.NewServer(tool)
	defer server.Close()
	config, data := effectsConfig(t, server.URL, "")
	file := filepath.Join(filepath.Dir(config), "tools", "effects.yaml")
	versions := []string{"1.0.0", "2.0.0"}
	put := func(version string) {
		text := "tools:\n"
		for _, name := range []string{"once", "read"} {
			text += fmt.Sprintf("  - {name: %s, version: %s, effect: %s, input_schema: {type: object, properties: {n: {type: integer}}}, run: {type: http, url: %q, timeout: 20s, addresses: [127.0.0.1/32]}}\n", name, version, name, server.URL)
		}
		if err := os.WriteFile(file+".new", []byte(text+"# end\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	put(versions[0])
	g := serveGate(t, config)
	over := make(chan struct{})
	var asking sync.WaitGroup
	for worker := range 6 {
		asking.Go(func() {
			for n := worker; ; n += 6 {
				select {
				case <-over:
					return
				default:
				}
				if r := g.call(t, numbered([]string{"once", "read"}[n%2], n)); !isResult(r) && !busy(r) {
					t.Errorf("%d %s", r.status, r.body)
				}
			}
		})
	}
	exchanges := 6
	digest := g.operators(t).Digest
	for i := range exchanges {
		put(versions[(i+1)%2])
		eventually(t, "another configuration is served", func() bool {
			o := g.operators(t)
			changed := o.Digest != digest
			digest = o.Digest
			return changed
		})
	}
	close(over)
	asking.Wait()
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	readLedger(t, data)
	of := map[string]map[string]bool{} // versions, by digest
	if _, err := audit.Read(func(r audit.Record) error {
		if of[r.ConfigDigest] == nil {
			of[r.ConfigDigest] = map[string]bool{}
		}
		of[r.ConfigDigest][r.ToolVersion] = true
		return nil
	}, filepath.Join(data, "audit.jsonl")); err != nil {
		t.Fatal(err)
	}
	if len(of) != 2 {
		t.Errorf("calls were judged by %d configurations, want both", len(of))
	}
	for digest, versions := range of {
		if len(versions) != 1 {
			t.Errorf("the configuration %.8s has judged by the versions %v", digest, versions)
		}
	}
}
