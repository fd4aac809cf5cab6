use pintle_providers::*;
use domain::llm::*; use domain::message::*; use domain::json::Rendered;
#[tokio::main(flavor="current_thread")]
async fn main() {
    let base = std::env::args().nth(1).unwrap();
    for mode in [ToolMode::JsonSchema, ToolMode::Native] {
    let mut spec = ProviderSpec::new("local", ProviderKind::OpenAi);
    spec.base_url = Some(base.clone()); spec.tool_mode = mode;
    let p = connect(&spec).unwrap();
    let tool = ToolDef::new("get_weather","tells the weather in a city", serde_json::json!({"type":"object","properties":{"city":{"type":"string"},"unit":{"enum":["c","f"]},"days":{"type":["integer","null"]},"tags":{"type":"array","items":{"type":"string"}}},"required":["city","unit"]}));
    let tool2 = ToolDef::new("write_file","writes a file", serde_json::json!({"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"},"extra":{}},"required":["path","content"]}));
    let mut req = LlmRequest{ model:"m".into(), messages: vec![Rendered::new(Message::text(Role::System,"You are helpful.")),Rendered::new(Message::text(Role::User,"What is the weather in Paris?"))], tools: vec![Rendered::new(tool),Rendered::new(tool2)], options: serde_json::json!({"temperature":0}).as_object().unwrap().clone(), graceful_terminal:false};
    for _ in 0..2 {
    let r = p.call("smollm2",&req,&|d| println!("  delta {d:?}")).await;
    println!("{mode:?} {r:?}");
    if let Ok(r)=r { let id=r.tool_calls.first().map(|c|c.id.clone()); req.messages.push(Rendered::new(r.into_message("m"))); if let Some(id)=id { req.messages.push(Rendered::new(Message::tool(&id,"15 degrees, sunny"))); } else { req.messages.push(Rendered::new(Message::text(Role::User,"Write the file a.txt"))); } }
    }
    req.options.insert("max_tokens".into(), 12.into());
    println!("short {:?}", p.call("smollm2",&req,&|_| {}).await);
    req.options.shift_remove("max_tokens");
    req.messages[1]=Rendered::new(Message::text(Role::User,"hello ".repeat(6000)));
    println!("long {:?}", p.call("smollm2",&req,&|_| {}).await);
    }
}
