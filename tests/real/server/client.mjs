// What a front end sees of a run, through LangGraph's JavaScript client; prints one JSON object.
// Arguments: the folder of the client, the server's address.
import { createRequire } from "node:module";

const [folder, apiUrl] = process.argv.slice(2);
const { Client } = createRequire(folder + "/")("@langchain/langgraph-sdk");
const client = new Client({ apiUrl });
const seen = { lists: [], words: "", nudges: 0, events: [] };

const { thread_id: thread } = await client.threads.create();
const input = { messages: [{ role: "user", content: "doze" }] };
const streamMode = ["updates", "messages-tuple", "custom"];
for await (const { event, data } of client.runs.stream(thread, "layered", { input, streamMode })) {
  if (event === "updates") {
    for (const update of Object.values(data)) if (update?.todos) seen.lists.push(update.todos);
  } else if (event === "custom") {
    seen.events.push(data.type);
  } else if (event === "messages" && data[0].type !== "tool") {
    if (data[0].id.startsWith("do-not-render-")) seen.nudges += 1;
    else seen.words += data[0].content;
  }
}
const { values } = await client.threads.getState(thread);
seen.reason = values.todo_session.reason;
seen.todos = values.todos;

const question = await client.threads.create();
const words = { messages: [{ role: "user", content: "ask" }] };
await client.runs.wait(question.thread_id, "layered", { input: words });
const asked = await client.threads.getState(question.thread_id);
seen.question = asked.tasks.flatMap((task) => task.interrupts.map((one) => one.value));
const answered = await client.runs.wait(question.thread_id, "layered", { command: { resume: "this one" } });
seen.answer = answered.messages.at(-1).content;

const [assistant] = await client.assistants.search({ graphId: "layered" });
const { context_schema: form } = await client.assistants.getSchemas(assistant.assistant_id);
seen.form = Object.keys(form.properties);
console.log(JSON.stringify(seen));
