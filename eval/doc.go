// Package eval measures how quickly a refusal tells a model what to change.
//
// A case is a completion that is refused. The kernel judges it, a scripted model reads the bytes
// that a real one would read ({"tool_result":{"tool":…,"output":{"error":…}}}) and sends its next
// completion, until a call passes, the model gives up, or MaxTurns are used up. Scripted models
// know what they wanted to say (Intent), and otherwise only what they read. Nothing is executed,
// recorded or taken from a limit, but in a scene: there a call meets limits, people, a log, a store
// or a tool that fail it, all in this process, and what passes is executed. The figures of a run
// are the same each time.
//
// A scripted model is no language model. That one succeeds shows that the refusal holds what is
// needed: the place, the name, the form or the requirement.
package eval
