package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/internal/safe"
)

const (
	maxHookInput  = 16 << 20
	maxHookAnswer = 64 << 10

	hookAgentUsage = "the `AGENT` that calls are judged for (default: the key's only one, or the configuration's)"
)

func newHooks(e env) *cobra.Command {
	parent := group("hook", "Judge the calls of a coding agent, as its hook")
	for _, agent := range []struct{ name, title string }{{"claude-code", "Claude Code"}, {"codex", "Codex"}} {
		parent.AddCommand(newAgentHook(e, agent.name, agent.title))
	}
	parent.AddCommand(newHookInstall(e))
	return parent
}

func newAgentHook(e env, agent, title string) *cobra.Command {
	var address, judgedFor string
	timeout := 25 * time.Second
	c := &cobra.Command{
		Use:   agent,
		Short: "Judge a call of " + title,
		Long: `Read what ` + title + ` gives its hook from standard input, have a gateway judge the call,
and print its answer. The gateway's key is in the variable CALLGATE_KEY, if it wants one.

Exit codes: 0 with an answer, which denies or permits; 2 for everything else, with the
reason on standard error, so that the agent does not run the tool. "callgate hook
install ` + agent + `" prints the settings that name this command.`,
		Example: "  callgate hook " + agent + " --url http://127.0.0.1:8080 < input.json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := notEmpty(c, "agent"); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			var answer []byte
			done := make(chan error, 1)
			go func() { // which standard input may block
				done <- safe.Do(func() (err error) { // a panic would end with a code at which agents run the tool
					answer, err = askHook(ctx, e, address, agent, judgedFor)
					return err
				})
			}()
			var err error
			select {
			case err = <-done:
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("there was no answer within %s", duration.Spell(timeout))
			}
			if err != nil {
				return fmt.Errorf("this call was not judged, so it must not run: %w", err)
			}
			if _, err = e.Stdout.Write(answer); err != nil {
				return fmt.Errorf("the answer cannot be written, so the call must not run: %w", oserr.Reason(err))
			}
			return nil
		},
	}
	c.Flags().StringVar(&address, "url", "http://127.0.0.1:8080", "the `URL` of the gateway")
	c.Flags().StringVar(&judgedFor, "agent", "", hookAgentUsage)
	c.Flags().Var((*durationFlag)(&timeout), "timeout", "how `LONG` the gateway may take; shorter than the agent waits for its hook")
	return c
}

// askHook passes the hook's input on, and returns the gateway's answer. A name judgedFor is that of the agent in the configuration.
func askHook(ctx context.Context, e env, address, agent, judgedFor string) ([]byte, error) {
	base, err := url.Parse(address)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("--url is %q; expected a URL such as http://127.0.0.1:8080", address)
	}
	input, err := io.ReadAll(io.LimitReader(e.Stdin, maxHookInput+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("standard input cannot be read: %w", oserr.Reason(err))
	case len(input) > maxHookInput:
		return nil, fmt.Errorf("standard input is longer than %d MiB", maxHookInput>>20)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base.JoinPath("v1/hooks", agent).String(), bytes.NewReader(input))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if key := os.Getenv(keyVariable); key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	if judgedFor != "" {
		request.Header.Set(server.HeaderAgent, judgedFor)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("the gateway cannot be reached: %w", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxHookAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("the gateway's answer was cut off: %w", err)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(answer, &object); response.StatusCode != http.StatusOK || len(answer) > maxHookAnswer || err != nil ||
		object == nil {
		return nil, fmt.Errorf("the gateway answered with status %d: %s", response.StatusCode, messageOf(answer))
	}
	if !isHookAnswer(answer, response.Header) {
		return nil, fmt.Errorf("what answers at %s gives no answer to a hook: %s; expected a Callgate", address, messageOf(answer))
	}
	return answer, nil
}

// isHookAnswer reports whether an object is one with which a gateway answers a hook. The empty one permits, and any server may
// send it: that of a gateway names the call.
func isHookAnswer(answer []byte, head http.Header) bool {
	var hook struct {
		Decides  map[string]any `json:"hookSpecificOutput"`
		Decision string         `json:"decision"`
		Reason   string         `json:"reason"`
	}
	d := json.NewDecoder(bytes.NewReader(answer))
	d.DisallowUnknownFields()
	return d.Decode(&hook) == nil && (hook.Decides != nil || hook.Decision != "" || head.Get(server.HeaderCallID) != "")
}

// messageOf is the message of a refusal, or what there is of an answer that is none.
func messageOf(answer []byte) string {
	var refused struct {
		Error struct{ Code, Message string }
	}
	if json.Unmarshal(answer, &refused) == nil && refused.Error.Message != "" {
		return refused.Error.Code + ": " + refused.Error.Message
	}
	return fmt.Sprintf("%.200q", answer)
}

func newHookInstall(e env) *cobra.Command {
	var address, judgedFor string
	var managed bool
	c := &cobra.Command{
		Use:   "install claude-code|codex",
		Short: "Print the settings that make an agent ask the gateway",
		Long: `Print the settings that have a coding agent ask the gateway before each call of a tool,
and after it. Nothing is written: the first line says where they belong.

Settings of a user or a project can be changed by the agent itself, which can edit files.
--managed prints those of an administrator, which it cannot.`,
		Example:   "  callgate hook install claude-code --managed",
		Args:      cobra.MatchAll(arguments(1, 1), cobra.OnlyValidArgs),
		ValidArgs: []string{"claude-code", "codex"},
		RunE: func(c *cobra.Command, args []string) error {
			if err := notEmpty(c, "agent"); err != nil {
				return err
			}
			if strings.ContainsAny(judgedFor, "$`\\\"'\n\r\t") { // of which a shell, or Claude Code, would make another name
				return fmt.Errorf("--agent is %q; expected a name without quotes, $, backslashes and line breaks", judgedFor)
			}
			if args[0] == "codex" {
				printCodexHooks(e.Stdout, address, judgedFor, managed)
				return nil
			}
			return printClaudeHooks(e.Stdout, e.Stderr, address, judgedFor, managed)
		},
	}
	c.Flags().StringVar(&address, "url", "http://127.0.0.1:8080", "the `URL` of the gateway")
	c.Flags().StringVar(&judgedFor, "agent", "", hookAgentUsage)
	c.Flags().BoolVar(&managed, "managed", false, "print the settings of an administrator")
	return c
}

// claudeEvents are those that the gateway answers.
var claudeEvents = []string{"PreToolUse", "PreSkillShellCommand", "PermissionRequest", "PostToolUse", "PostToolUseFailure"}

func printClaudeHooks(out, notes io.Writer, address, judgedFor string, managed bool) error {
	headers := map[string]string{"Authorization": "Bearer $CALLGATE_KEY"}
	if judgedFor != "" {
		headers[server.HeaderAgent] = judgedFor
	}
	hook := []any{map[string]any{"hooks": []any{map[string]any{
		"type": "http", "url": strings.TrimSuffix(address, "/") + "/v1/hooks/claude-code", "timeout": 30, "onFailure": "block",
		"headers": headers, "allowedEnvVars": []string{"CALLGATE_KEY"},
	}}}}
	events := map[string]any{}
	for _, event := range claudeEvents {
		events[event] = hook
	}
	settings := map[string]any{"hooks": events}
	place := "~/.claude/settings.json, or .claude/settings.json of a project"
	if managed {
		settings["allowManagedHooksOnly"] = true
		place = "the managed settings: /etc/claude-code/managed-settings.json on Linux"
	}
	fmt.Fprintf(notes, "These belong in %s. They need Claude Code 2.1.295 or later: older versions run the tool where the gateway does not answer.\n", place)
	text := json.NewEncoder(out)
	text.SetEscapeHTML(false)
	text.SetIndent("", "  ")
	return text.Encode(settings)
}

// printCodexHooks prints TOML. The shell denies where the program is missing, which Codex would let pass.
func printCodexHooks(out io.Writer, address, judgedFor string, managed bool) {
	place := "~/.codex/config.toml; Codex asks you to trust them, and leaves them out until you do"
	if managed {
		place = "/etc/codex/requirements.toml"
	}
	fmt.Fprintf(out, "# These belong in %s.\n", place)
	if managed {
		fmt.Fprintln(out, "allow_managed_hooks_only = true")
	}
	flags := fmt.Sprintf("--url %q", address)
	if judgedFor != "" {
		flags += " --agent " + shellWord(judgedFor)
	}
	for _, event := range []string{"PreToolUse", "PermissionRequest", "PostToolUse"} {
		fmt.Fprintf(out, `
[[hooks.%s]]
[[hooks.%[1]s.hooks]]
type = "command"
command = '''callgate hook codex %s || { echo "callgate: the hook failed, so nothing may run" >&2; exit 2; }'''
timeout = 30
`, event, flags)
	}
}
