//! The fence on a server: whose transactions it stops, what waits for them, and arms that fail half way.

use mongo_migrate_kit::connect::UpdateForm;
use mongo_migrate_kit::lock::lease::RunId;
use mongo_migrate_kit::lock::store::{ArmReply, Attempt, LockStore, ReleaseReply, RenewReply};
use mongodb::ClientSession;
use mongodb::bson::{Document, doc};

use crate::fence::{acquired, arm, armed, register, time_passes};
use crate::worlds::{LockWorld, MongoWorld, Retries, failing_replica_set, replica_set};

in_both_forms! {
    a_transaction_that_was_overtaken_before_it_touched_the_fence_fails,
    an_arm_waits_for_a_transaction_that_touched_the_fence_first,
    a_release_is_not_held_up_by_a_transaction_that_holds_the_fence,
    odd_entries_of_a_register_are_passed_over_and_kept,
    a_commit_without_a_reply_is_sent_again_and_raises_the_token_once,
    an_arm_that_a_server_refuses_is_refused_and_one_that_it_interrupts_is_unknown,
}

/// A body's transaction, begun and with its snapshot taken.
async fn body(world: &MongoWorld) -> ClientSession {
    let mut session = world.bystander.start_session().await.expect("a session");
    session.start_transaction().await.expect("transactions");
    let data = world.bystander.database(&world.db_name).collection::<Document>("data");
    data.insert_one(doc! { "written": "by the body" }).session(&mut session).await.expect("room");
    session
}

/// The body's last statement before its commit: `n`, or the server's code.
async fn fence(world: &MongoWorld, session: &mut ClientSession, token: i64) -> Result<i32, i32> {
    let command = world.lock().fence_command(token);
    let command = Document::from_reader(command.as_slice()).expect("a command is BSON");
    let database = world.bystander.database(&world.db_name);
    let reply = database.run_command(command).session(session).await;
    reply.map(|reply| reply.get_i32("n").expect("a count")).map_err(|error| {
        match error.kind.as_ref() {
            mongodb::error::ErrorKind::Command(command) => command.code,
            other => panic!("no reply of the server: {other:?}"),
        }
    })
}

/// The collection must exist before a transaction writes to it.
async fn prepared(world: &MongoWorld) -> (Attempt, i64) {
    let data = world.bystander.database(&world.db_name).collection::<Document>("data");
    data.insert_one(doc! {}).await.expect("room");
    armed(world).await
}

async fn a_transaction_that_was_overtaken_before_it_touched_the_fence_fails(form: UpdateForm) {
    let Some(world) = replica_set().await else { return };
    let world = world.in_form(form);
    let (_, token) = prepared(&world).await;
    let mut zombie = body(&world).await;
    time_passes(&world).await;
    let (_, newer) = armed(&world).await;
    assert_eq!(fence(&world, &mut zombie, token).await, Err(WRITE_CONFLICT));
    let _ = zombie.abort_transaction().await;

    // A transaction whose snapshot is younger than the take-over finds its token outdated.
    let mut zombie = body(&world).await;
    assert_eq!(fence(&world, &mut zombie, token).await, Ok(0));
    let _ = zombie.abort_transaction().await;
    assert_eq!(world.token().await, newer);
    world.close().await;
}

async fn an_arm_waits_for_a_transaction_that_touched_the_fence_first(form: UpdateForm) {
    let Some(world) = replica_set().await else { return };
    let world = world.in_form(form);
    let (_, token) = prepared(&world).await;
    let mut running = body(&world).await;
    assert_eq!(fence(&world, &mut running, token).await, Ok(1));
    time_passes(&world).await;
    let successor = acquired(&world).await;
    let reply = arm(&world, &successor).await;
    let ArmReply::Unknown(fault) = reply else { panic!("{reply:?}") };
    assert_eq!(fault.server_code, Some(WRITE_CONFLICT));
    // The lease is renewed meanwhile, whoever holds the fence.
    let renewed = world.lock().renew(&successor.owner).await;
    assert!(matches!(renewed, RenewReply::Renewed { .. }), "{renewed:?}");

    running.commit_transaction().await.expect("nobody was first");
    assert_eq!(arm(&world, &successor).await, ArmReply::Armed { token: token + 1 });
    world.close().await;
}

async fn a_release_is_not_held_up_by_a_transaction_that_holds_the_fence(form: UpdateForm) {
    let Some(world) = replica_set().await else { return };
    let world = world.in_form(form);
    let (ours, token) = prepared(&world).await;
    let mut running = body(&world).await;
    assert_eq!(fence(&world, &mut running, token).await, Ok(1));
    let reply = world.lock().release(&ours.owner, Some(&ours.identity.run_id)).await;
    assert_eq!(reply, ReleaseReply::Released);
    assert_eq!(register(&world).await, [ours.identity.run_id]);
    let _ = running.abort_transaction().await;
    world.close().await;
}

async fn odd_entries_of_a_register_are_passed_over_and_kept(form: UpdateForm) {
    let Some(world) = replica_set().await else { return };
    let world = world.in_form(form);
    let odd = doc! {
        "_id": "mmk_fence", "token": 7, "unsettled": [
            1, "text", {}, { "runId": 5 }, { "runId": "left", "changelog": "c", "pid": "x" },
        ],
    };
    world.locks().insert_one(odd).await.expect("room");
    assert_eq!(register(&world).await, [RunId::from_text("left")]);
    let (ours, token) = armed(&world).await;
    assert_eq!(token, 8);
    assert_eq!(register(&world).await, [RunId::from_text("left"), ours.identity.run_id]);

    let unreadable = doc! { "$set": { "unsettled": "none" } };
    world.locks().update_one(doc! { "_id": "mmk_fence" }, unreadable).await.expect("an update");
    assert_eq!(register(&world).await, []);
    time_passes(&world).await;
    let (ours, _) = armed(&world).await;
    assert_eq!(register(&world).await, [ours.identity.run_id]);
    world.close().await;
}

async fn a_commit_without_a_reply_is_sent_again_and_raises_the_token_once(form: UpdateForm) {
    let Some(world) = failing_replica_set(Retries::Off).await else { return };
    let world = world.in_form(form);
    let ours = acquired(&world).await;
    let lost = doc! { "writeConcernError": { "code": 64, "errmsg": "not replicated in time" } };
    world.fail("commitTransaction", 2, lost).await;
    assert_eq!(arm(&world, &ours).await, ArmReply::Armed { token: 1 });
    world.close().await;
}

async fn an_arm_that_a_server_refuses_is_refused_and_one_that_it_interrupts_is_unknown(
    form: UpdateForm,
) {
    let Some(world) = failing_replica_set(Retries::Off).await else { return };
    let world = world.in_form(form);
    let ours = acquired(&world).await;
    world.fail("findAndModify", 1, doc! { "errorCode": 13 }).await;
    assert!(matches!(arm(&world, &ours).await, ArmReply::Refused(_)));
    for code in [50, 91, 112, 251, 11602] {
        world.fail("commitTransaction", 9, doc! { "errorCode": code }).await;
        let reply = arm(&world, &ours).await;
        assert!(matches!(reply, ArmReply::Unknown(_)), "{code}: {reply:?}");
        world.spare().await;
        // It was not carried out, and what it had begun is taken back.
        let renewed = world.lock().renew(&ours.owner).await;
        assert!(matches!(renewed, RenewReply::Renewed { .. }), "{code}: {renewed:?}");
        let again = arm(&world, &ours).await;
        assert!(matches!(again, ArmReply::Armed { .. }), "{code}: {again:?}");
    }
    world.close().await;
}

const WRITE_CONFLICT: i32 = 112;
