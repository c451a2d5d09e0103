/** Which of a request's tools the sandbox calls. */
import { type Fields, isFields, lastMessage, listOf } from './body.ts';

/** Those `tool_choice` asks for, or those the user named and has had no answer of yet. */
export function calledTools(body: Fields, said: string): readonly Fields[] {
  const tools = listOf(body.tools);
  const choice = body.tool_choice ?? 'auto';
  if (tools.length === 0 || choice === 'none') return [];
  const allowed = allowedTools(tools, choice);
  const named = isFields(choice) ? nameOf(choice) : undefined;
  const isRequired =
    choice === 'required' ||
    (isFields(choice) && isFields(choice.allowed_tools) && choice.allowed_tools.mode === 'required');
  const isAnswered = lastMessage(body)?.role === 'tool';
  const mentioned = isAnswered ? [] : allowed.filter((tool) => said.includes(nameOf(tool) ?? '\0'));
  let called = mentioned;
  if (named !== undefined) called = allowed.filter((tool) => nameOf(tool) === named);
  else if (isRequired && mentioned.length === 0) called = allowed.slice(0, 1);
  return body.parallel_tool_calls === false ? called.slice(0, 1) : called;
}

function allowedTools(tools: readonly Fields[], choice: unknown): readonly Fields[] {
  if (!isFields(choice) || !isFields(choice.allowed_tools)) return tools;
  const names = new Set(listOf(choice.allowed_tools.tools).map(nameOf));
  return tools.filter((tool) => names.has(nameOf(tool)));
}

export function nameOf(toolOrChoice: Fields): string | undefined {
  const definition = toolOrChoice.function ?? toolOrChoice.custom;
  return isFields(definition) && typeof definition.name === 'string' ? definition.name : undefined;
}
