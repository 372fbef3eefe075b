package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// step is something to try: a command for a shell, and what it says.
type step struct {
	title, command string
	// holds checks the output of the command. soon says that it may take a while to
	// be so, and that the command can be run again until it is.
	holds func(output string) bool
	soon  bool
}

// quoted is a word of a shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// each is a loop of a shell over addresses.
func each(addresses []string, command string) string {
	return "for at in " + strings.Join(addresses, " ") + "; do " + command + "; done"
}

// steps are what is printed, in the order in which it can be tried.
func (s *stage) steps() []step {
	var public, admin []string
	for _, g := range s.gateways {
		public, admin = append(public, g.listen), append(admin, g.admin)
	}
	call := func(options, tool, arguments string) string {
		return `curl -s ` + options + `http://$at/v1/calls -H 'Content-Type: text/plain' -d ` + quoted(`{"tool":{"name":"`+tool+`","arguments":`+arguments+`}}`)
	}
	const status = `-o /dev/null -w '%{http_code} ' `
	policy := filepath.Join(s.config(), "policy.csv")
	statuses := each(public, call(status, "sample.time", "{}"))
	ready := each(admin, "curl -s http://$at/readyz")
	return []step{
		{
			title:   "Call each of the three:",
			command: each(public, call("", "sample.time", "{}")),
			holds:   func(output string) bool { return strings.Count(output, `"utc":`) == 3 },
		},
		{
			title:   "Spend one limit through all of them. sample.search lets five pass, and then one in\nten seconds, whichever gateway gets the call; the others are answered 429:",
			command: each(append(append(append([]string{}, public...), public...), public...), call(status, "sample.search", `{"query":"ferry"}`)),
			holds: func(output string) bool {
				passed, refused := strings.Count(output, "200 "), strings.Count(output, "429 ")
				// A gateway that did not hear of Redis in time, on a busy machine, refuses a call that
				// Redis may have let pass.
				late := strings.Count(output, "503 ")
				return passed+late >= 5 && passed <= 6 && passed+refused+late == 9
			},
		},
		{
			title:   "See what they serve, and that they agree: the digests are one.",
			command: ready,
			holds:   agree,
		},
		{
			title:   "Edit a file that all of them read, in an editor or like this. All take it up\nwithin two seconds:",
			command: "cd " + quoted(s.config()) + " && { grep -v '^# end$' policy.csv; echo 'p, Analyst, *, sample.time, , deny'; echo '# end'; } > policy.new && mv policy.new policy.csv",
			holds:   func(output string) bool { return output == "" },
		},
		{
			title:   "The tool that the new last row of " + policy + " denies is now answered 403:",
			command: statuses,
			holds:   func(output string) bool { return output == "403 403 403 " },
			soon:    true,
		},
		{
			title:   fmt.Sprintf("Kill Redis. It is started again after %v:", away),
			command: "kill -9 " + s.pid(),
			holds:   func(output string) bool { return output == "" },
		},
		{
			title:   "Meanwhile each gateway grants a third of every limit. The first call that meets\nthe loss tells it, and so does the admin listener from then on:",
			command: each(public, call("-o /dev/null ", "sample.time", "{}")) + "; " + ready,
			holds:   func(output string) bool { return strings.Count(output, `"limits":"`) == 3 },
			soon:    true,
		},
	}
}

// agree reports whether three gateways serve one configuration and share limits.
func agree(output string) bool {
	_, rest, ok := strings.Cut(output, `"digest":"`)
	digest, _, _ := strings.Cut(rest, `"`)
	return ok && strings.Count(output, `"digest":"`+digest+`"`) == 3 && !strings.Contains(output, `"limits":`)
}

// tell prints what runs, and what to try.
func (s *stage) tell(stdout io.Writer) {
	var b strings.Builder
	b.WriteString("Three gateways that share their limits on one Redis, in front of the sample tool.\n\n")
	for _, g := range s.gateways {
		fmt.Fprintf(&b, "%-12s http://%s   admin http://%s   process %d\n", g.name, g.listen, g.admin, g.cmd.Process.Pid)
	}
	fmt.Fprintf(&b, "%-12s redis://%s   process %s\n", "redis", s.redisAt, s.pid())
	fmt.Fprintf(&b, "%-12s http://%s/hits shows what reached it\n", "sampletool", s.toolAt)
	fmt.Fprintf(&b, "%-12s %s\n%-12s %s\n", "files", s.config(), "logs, audit", s.folder)
	for _, step := range s.steps() {
		fmt.Fprintf(&b, "\n%s\n\n    %s\n", step.title, step.command)
	}
	b.WriteString("\nCtrl-C ends everything, and removes the files.\n")
	fmt.Fprint(stdout, b.String())
}
