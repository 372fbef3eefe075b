package store_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

var rewrite = flag.Bool("rewrite", false, "write what the memory answers into testdata")

// TestScripts runs the scripts of testdata on each back end. A script is blocks of commands, a line
// "----", and what they print, up to an empty line:
//
//	[process ":"] verb {word} {name "=" value}
//
// Where a back end is shared, A and B are two processes; elsewhere they are one. What is simply done
// prints nothing; what answers, or is refused, prints one line.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			must(t, err)
			for name, open := range backends {
				t.Run(name, func(t *testing.T) {
					c := newClock()
					s := &script{t: t, clock: c}
					if name == "redis" {
						o := at(redistest.Shared(t))
						s.a, s.b = join(t, o, testHooks{now: c.now}), join(t, o, testHooks{now: c.now})
					} else {
						s.a = open(t, c.now, store.Bounds{}).(noticeStore)
						s.b = s.a
					}
					got := s.run(string(text))
					switch {
					case got == string(text):
					case *rewrite && name == "memory":
						must(t, os.WriteFile(file, []byte(got), 0o644))
					default:
						t.Errorf("%s says, on %s:\n%s", file, name, got)
					}
				})
			}
		})
	}
}

// script is a script that runs.
type script struct {
	t     *testing.T
	a, b  noticeStore
	clock *clock
	asked map[string]approval.Approval
	told  map[string]store.Notice
}

// run runs a script and returns it with what its commands print.
func (s *script) run(text string) string {
	s.asked, s.told = map[string]approval.Approval{}, map[string]store.Notice{}
	var out strings.Builder
	for i, block := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		if i > 0 {
			out.WriteString("\n")
		}
		commands, _, printing := strings.Cut(block+"\n", "----\n")
		out.WriteString(commands)
		if !printing {
			continue
		}
		out.WriteString("----\n")
		for line := range strings.Lines(commands) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			on, process := s.a, ""
			fields := strings.Fields(line)
			if name, of := strings.CutSuffix(fields[0], ":"); of {
				if process = name + ": "; name == "B" {
					on = s.b
				}
				fields = fields[1:]
			}
			if printed := s.command(on, fields); printed != "" {
				out.WriteString(process + printed + "\n")
			}
		}
	}
	return out.String()
}

// command runs one command and returns what it prints.
func (s *script) command(on noticeStore, fields []string) string {
	verb, id, options := fields[0], "", map[string]string{}
	for _, f := range fields[1:] {
		if name, value, option := strings.Cut(f, "="); option {
			options[name] = value
		} else {
			id = f
		}
	}
	list := func(name string) (of []string) {
		if options[name] != "" {
			of = strings.Split(options[name], ",")
		}
		return of
	}
	duration := func(text string) time.Duration {
		d, err := time.ParseDuration(text)
		must(s.t, err)
		return d
	}
	var err error
	switch verb {
	case "tick":
		s.clock.advance(duration(id))
	case "open":
		var prior *store.Call
		if prior, err = on.Open(ctx, newCall(id, options["key"])); prior != nil {
			return "prior " + shown(*prior)
		}
	case "dispatch":
		err = on.Dispatch(ctx, id, store.Task{Tool: "t", Version: "1.0.0", Agent: "a", Effect: options["effect"], Arguments: []byte(`{}`), Using: list("using"), Spends: list("spends")})
	case "again":
		err = on.Update(ctx, id, store.Redispatch{})
	case "wait":
		err = on.Update(ctx, id, store.Defer{Until: s.clock.now().Add(duration(options["for"]))})
	case "finish":
		e := ending(options["attempt"], "r")
		e.Deliver = options["deliver"] == "yes"
		_, err = on.Finish(ctx, id, e)
	case "deliver":
		err = on.Update(ctx, id, store.Deliver{Principal: "p"})
	case "note":
		err = on.Update(ctx, id, store.SetMetadata{At: store.Step(options["at"]), Was: []byte(options["was"]), Metadata: []byte(options["is"])})
	case "forget":
		err = on.Settle(ctx, id)
	case "show":
		var c store.Call
		if c, err = on.Get(ctx, id, store.Of("p")); err == nil {
			return shown(c)
		}
	case "expired":
		var calls []store.Call
		if calls, err = on.Recover(ctx, store.Expired, 10); err != nil {
			break
		}
		ids := []string{"expired"}
		for _, c := range calls {
			ids = append(ids, c.ID)
		}
		return strings.Join(ids, " ")
	case "ask":
		a := question(s.t, s.clock, id, "p", strconv.Quote(options["args"]), list("rule")...)
		s.asked[id] = a
		var kept approval.Approval
		var joined bool
		if kept, joined, err = on.Ask(ctx, a); joined {
			return "joins " + kept.ID
		}
	case "vote":
		_, err = on.Vote(ctx, id, says(s.asked[id], options["by"], options["says"] == "yes"))
	case "withdraw":
		_, err = on.EndApproval(ctx, id, approval.Ending{End: approval.EndWithdrawn})
	case "asked":
		var a approval.Approval
		if a, err = on.Approval(ctx, id); err == nil {
			return strings.TrimSpace(fmt.Sprintf("%s %s revision=%d %s", id, a.State(approvalRules, anybody, s.clock.now()), a.Revision, a.Ran))
		}
	case "grant":
		err = on.AddGrant(ctx, approval.Grant{ID: id, Key: "k", Call: approval.Call{Principal: "p"}, Until: s.clock.now().Add(duration(options["for"]))})
	case "revoke":
		_, err = on.RevokeGrant(ctx, id)
	case "news":
		var notices []store.Notice
		if notices, err = on.ClaimNotices(ctx, 10, lease); err != nil {
			break
		}
		ids := []string{}
		for _, n := range notices {
			s.told[n.Approval.ID] = n
			ids = append(ids, n.Approval.ID)
		}
		slices.Sort(ids)
		return strings.Join(append([]string{"news"}, ids...), " ")
	case "told":
		n := s.told[id]
		err = on.SettleNotice(ctx, &n, 0, 0)
	default:
		s.t.Fatalf("found the verb %q", verb)
	}
	if err != nil {
		return "refused: " + err.Error()
	}
	return ""
}

// shown is a call in one line.
func shown(c store.Call) string {
	text := fmt.Sprintf("%s %s attempts=%d", c.ID, c.Step, c.Attempts)
	if c.Step == store.Ended {
		text += fmt.Sprintf(" %s by=%s delivered=%v", c.State, c.FinishedBy, c.Delivered)
	}
	if len(c.Metadata) > 0 {
		text += " note=" + string(c.Metadata)
	}
	return text
}
