(* Whole tables.

   People are the members of any finite type, a table is a set T of people, and
   every person belongs to one cell (the recoded record: the value of a mapping
   at the person's record). The sample is a random subset of T, each member kept
   with probability b independently. Of every cell the number of sampled records
   is published if it is at least k. Neighbours are T and T without one person.

   The theorem: one cell decides. The smallest delta of whole tables, over every
   universe, every mapping and every set of published tables, is the smallest
   delta of one cell, which Crowd.v computes. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Incrowd Require Import Binomial Crowd.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Sampling.
Variables (R : realFieldType) (I : finType).
Implicit Types (b : R) (A B T K : {set I}) (F G : {set I} -> R).

(* The probability that A is the sample of T. *)
Definition weight b T A : R := b ^+ #|A| * (1 - b) ^+ #|T :\: A|.

(* The expectation of F(sample of T). *)
Definition expect b T F : R := \sum_(A : {set I} | A \subset T) weight b T A * F A.

Lemma expect_ext b T F G : (forall A, A \subset T -> F A = G A) -> expect b T F = expect b T G.
Proof. by move=> eq_FG; apply: eq_bigr => A sub_AT; rewrite eq_FG. Qed.

Lemma expect_set0 b F : expect b set0 F = F set0.
Proof.
rewrite /expect (big_pred1 set0) => [|A]; last by rewrite subset0.
by rewrite /weight setD0 cards0 !expr0 !mul1r.
Qed.

(* Conditioning on whether r is kept. *)
Lemma expect_rec b T F r : r \in T ->
  expect b T F = b * expect b (T :\ r) (fun A => F (r |: A)) + (1 - b) * expect b (T :\ r) F.
Proof.
move=> r_in; rewrite /expect (bigID (fun A : {set I} => r \in A)) /=; congr (_ + _).
  rewrite (reindex_onto (fun A => r |: A) (fun A => A :\ r)) /=; last first.
    by move=> A /andP [_ r_in_A]; rewrite setD1K.
  rewrite mulr_sumr; apply: eq_big => [A | A sub_A].
    rewrite subUset sub1set r_in setU11 subsetD1 /= andbT; congr (_ && _).
    by apply/eqP/idP => [<- | notin]; [rewrite setD11 | rewrite setU1K].
  rewrite mulrA; congr (_ * _).
  have notin : r \notin A.
    by case/andP: sub_A => _ /eqP <-; rewrite setD11.
  by rewrite /weight cardsU1 notin exprS mulrA setDDl.
rewrite mulr_sumr; apply: eq_big => [A | A /andP [sub_A notin]]; first by rewrite subsetD1.
rewrite mulrA; congr (_ * _); rewrite /weight [RHS]mulrCA -exprS; congr (_ * _ ^+ _).
by rewrite (cardsD1 r) inE notin r_in /= setDDl setUC -setDDl.
Qed.

Lemma set_ind (P : {set I} -> Prop) :
  P set0 -> (forall T r, r \in T -> P (T :\ r) -> P T) -> forall T, P T.
Proof.
move=> P0 PS T; have [n lt_Tn] := ubnP #|T|; elim: n T lt_Tn => // n IH T lt_Tn.
case: (set_0Vmem T) lt_Tn => [-> // | [r r_in] lt_Tn].
by apply: (PS T r r_in); apply: IH; move: lt_Tn; rewrite (cardsD1 r) r_in.
Qed.

Lemma expectD b T F G : expect b T (fun A => F A + G A) = expect b T F + expect b T G.
Proof. by rewrite /expect -big_split; apply: eq_bigr => A _; rewrite mulrDr. Qed.

Lemma expectZ b T c F : expect b T (fun A => c * F A) = c * expect b T F.
Proof. by rewrite /expect mulr_sumr; apply: eq_bigr => A _; rewrite mulrCA. Qed.

Lemma expect_const b T c : expect b T (fun=> c) = c.
Proof.
elim/set_ind: T => [|T r r_in IH]; first by rewrite expect_set0.
by rewrite (expect_rec _ _ r_in) IH; ring.
Qed.

Lemma expect_le b T F G : 0 < b -> b < 1 ->
  (forall A, A \subset T -> F A <= G A) -> expect b T F <= expect b T G.
Proof.
move=> b_gt0 b_lt1 le_FG; apply: ler_sum => A sub_A; rewrite ler_wpmul2l ?le_FG //.
by rewrite mulr_ge0 ?exprn_ge0 ?subr_ge0 // ltW.
Qed.

(* The number of sampled records is binomial. *)
Lemma expect_card b T phi : expect b T (fun A => phi #|A|) = mean b #|T| phi.
Proof.
elim/set_ind: T phi => [|T r r_in IH] phi; first by rewrite expect_set0 cards0 mean0.
rewrite (expect_rec _ _ r_in) (cardsD1 r T) r_in add1n meanS -!IH; congr (_ * _ + _).
by apply: expect_ext => A; rewrite subsetD1 => /andP [_ notin]; rewrite cardsU1 notin.
Qed.

(* Records within K and outside of it are sampled independently. *)
Lemma expect_split b K T F :
  expect b T F = expect b (T :\: K) (fun B => expect b (T :&: K) (fun A => F (A :|: B))).
Proof.
move: {2}#|T :&: K| (erefl #|T :&: K|) => n; elim: n T F => [|n IH] T F card_n.
  move/eqP: (card_n); rewrite cards_eq0 => /eqP empty.
  have -> : T :\: K = T by rewrite -[RHS](setID T K) empty set0U.
  by apply: expect_ext => B _; rewrite empty expect_set0 set0U.
have [r r_in] : exists r, r \in T :&: K by apply/card_gt0P; rewrite card_n.
have [r_T r_K] := setIP r_in.
have inner : (T :\ r) :&: K = (T :&: K) :\ r by rewrite setIDAC.
have outer : (T :\ r) :\: K = T :\: K.
  rewrite setDDl; congr (_ :\: _); apply/setUidPr; by rewrite sub1set.
have card_r : #|(T :\ r) :&: K| = n by move: card_n; rewrite inner (cardsD1 r) r_in => -[].
rewrite (expect_rec _ _ r_T) !(IH (T :\ r)) // inner outer -!expectZ -expectD.
apply: expect_ext => B _; rewrite (expect_rec _ _ r_in); congr (_ * _ + _).
by apply: expect_ext => A _; rewrite setUA.
Qed.

Section Cells.
Variables (C : finType) (cell : I -> C).

(* The records of a set that lie in cell c. *)
Definition part A c : {set I} := [set i in A | cell i == c].

(* Cells are sampled independently, and each is binomial. *)
Lemma expect_cells b T (F : C -> nat -> R) :
  expect b T (fun A => \prod_c F c #|part A c|) = \prod_c mean b #|part T c| (F c).
Proof.
elim/set_ind: T F => [|T r r_in IH] F.
  have part0 c : #|part set0 c| = 0%N.
    by rewrite /part (_ : [set _ in _ | _] = set0) ?cards0 //; apply/setP => i; rewrite !inE.
  by rewrite expect_set0; apply: eq_bigr => c _; rewrite part0 mean0.
have partD c : #|part T c| = ((cell r == c) + #|part (T :\ r) c|)%N.
  rewrite (cardsD1 r) inE r_in; congr (_ + _)%N; apply: eq_card => i.
  by rewrite !inE andbA.
have partU A c : A \subset T :\ r -> #|part (r |: A) c| = ((cell r == c) + #|part A c|)%N.
  rewrite subsetD1 => /andP [_ notin]; rewrite (cardsD1 r) !inE eqxx /=; congr (_ + _)%N.
  apply: eq_card => i; rewrite !inE; case: eqP => //= ->.
  by rewrite (negbTE notin).
pose F' c j := F c ((cell r == c) + j)%N.
rewrite (expect_rec _ _ r_in) IH (@expect_ext _ _ _ (fun A => \prod_c F' c #|part A c|)); last first.
  by move=> A sub_A; apply: eq_bigr => c _; rewrite partU.
rewrite IH !(bigD1 (cell r) (P := xpredT)) //= partD eqxx add1n meanS /F' eqxx.
set P := \prod_(c | _) _; set Q := \prod_(c | _) _; set P' := \prod_(c | _) _.
have -> : P = P' by apply: eq_bigr => c neq; rewrite partD eq_sym (negbTE neq).
have -> : Q = P' by apply: eq_bigr => c neq; rewrite partD eq_sym (negbTE neq).
by rewrite (mean_ext _ _ (psi := fun j => F (cell r) j.+1)) //; ring.
Qed.

Lemma all_cells (P : C -> bool) : [forall c, P c]%:R = \prod_c (P c)%:R :> R.
Proof.
case: (boolP [forall c, _]) => [/forallP all | /forallPn [c /negbTE none]].
  by rewrite big1 // => c _; rewrite all.
by rewrite (bigD1 c) //= none mul0r.
Qed.

(* Sampling the records and then recoding gives the histogram of the recoded
   table, thinned: its cells are independent and binomial. *)
Theorem sampling_commutes_with_recoding b T (x : {ffun C -> nat}) :
  expect b T (fun A => [forall c, #|part A c| == x c]%:R)
  = \prod_(c : C) mass b (x c) #|part T c|.
Proof.
rewrite (eq_bigr (fun c => mean b #|part T c| (fun j => (j == x c)%:R))) => [|c _]; last by rewrite mean_point.
by rewrite -expect_cells; apply: expect_ext => A _; rewrite all_cells.
Qed.

(* What is published of a sample: every cell's count, or 0 below k. *)
Definition seen k A : {ffun C -> nat} := [ffun c => published k #|part A c|].

(* The probability that the published table lies in S. *)
Definition release b k T (S : pred {ffun C -> nat}) : R := expect b T (fun A => (S (seen k A))%:R).

(* Given what is sampled of all other cells, one cell is as in Crowd.v. *)
Lemma release_cell b k T S c0 :
  release b k T S = expect b (T :\: [set i | cell i == c0]) (fun B =>
    law b k #|part T c0| (fun j => S [ffun c => if c == c0 then j else published k #|part B c|])).
Proof.
rewrite /release (expect_split _ [set i | cell i == c0]); apply: expect_ext => B sub_B.
have -> : part T c0 = T :&: [set i | cell i == c0] by apply/setP => i; rewrite !inE.
rewrite /law -expect_card; apply: expect_ext => A sub_A.
congr ((S _)%:R); apply/ffunP => c; rewrite !ffunE.
have inA i : i \in A -> cell i = c0.
  by move=> /(subsetP sub_A); rewrite !inE => /andP [_ /eqP].
have inB i : i \in B -> cell i != c0.
  by move=> /(subsetP sub_B); rewrite !inE => /andP [].
case: eqVneq => [-> | neq]; congr (published _ _); apply: eq_card => i; rewrite !inE.
  case: (boolP (i \in A)) => [/inA -> | _]; first by rewrite eqxx.
  by case: (boolP (i \in B)) => // /inB /negbTE ->.
by case: (boolP (i \in A)) => [/inA -> | //]; rewrite eq_sym (negbTE neq) !andbF.
Qed.

(* Tables that agree outside one cell are as private as that cell. *)
Lemma release_one_cell b E d k (T1 T2 : {set I}) c0 : 0 < b -> b < 1 ->
    T1 :\: [set i | cell i == c0] = T2 :\: [set i | cell i == c0] ->
    (forall U, law b k #|part T1 c0| U <= E * law b k #|part T2 c0| U + d) ->
  forall S, release b k T1 S <= E * release b k T2 S + d.
Proof.
move=> b_gt0 b_lt1 same bound S; rewrite !(release_cell _ _ _ _ c0) same.
rewrite -[d](expect_const b (T2 :\: [set i | cell i == c0])) -expectZ -expectD.
exact: expect_le.
Qed.

End Cells.
End Sampling.

Section Tables.
Variable R : realFieldType.
Implicit Types (b E d : R) (k : nat).

(* (epsilon, delta)-differential privacy of whole tables, under every mapping
   g of records to cells, for every table, every person in it and every event. *)
Definition tables_private b E k d : Prop :=
  forall (I C : finType) (X : Type) (record : I -> X) (g : X -> C)
         (T : {set I}) (r : I) (S : pred {ffun C -> nat}), r \in T ->
    release (g \o record) b k T S <= E * release (g \o record) b k (T :\ r) S + d /\
    release (g \o record) b k (T :\ r) S <= E * release (g \o record) b k T S + d.

Theorem one_cell_decides b E k d : 0 < b -> b < 1 ->
  tables_private b E k d <-> private b E k d.
Proof.
move=> b_gt0 b_lt1; split=> [tables n S | cells I C X record g T r S r_in].
  have value m (T : {set 'I_n.+1}) : #|T| = m ->
      release ((fun u : unit => u) \o (fun=> tt)) b k T (fun x => S (x tt)) = law b k m S.
    move=> <-; rewrite (release_cell _ _ _ _ _ tt).
    have -> : T :\: [set i : 'I_n.+1 | ((fun u : unit => u) \o (fun=> tt)) i == tt] = set0.
      by apply/setP => i; rewrite !inE eqxx.
    rewrite expect_set0 (_ : part _ T tt = T); last by apply/setP => i; rewrite !inE andbT.
    by apply: mean_ext => j; rewrite ffunE eqxx.
  have := tables [finType of 'I_n.+1] [finType of unit] unit (fun=> tt) (fun u => u) setT ord0 (fun x => S (x tt)) (in_setT _).
  rewrite (value n.+1 setT) ?cardsT ?card_ord // (value n (setT :\ ord0)) //.
  by have := cardsD1 ord0 [set: 'I_n.+1]; rewrite inE cardsT card_ord add1n => -[<-].
set cell := g \o record.
have outer : (T :\ r) :\: [set i | cell i == cell r] = T :\: [set i | cell i == cell r].
  by rewrite setDDl; congr (_ :\: _); apply/setUidPr; rewrite sub1set inE.
have card_T : #|part cell T (cell r)| = #|part cell (T :\ r) (cell r)|.+1.
  rewrite (cardsD1 r) !inE r_in eqxx /= add1n; congr _.+1; apply: eq_card => i.
  by rewrite !inE andbA.
by split; apply: (@release_one_cell _ _ _ cell _ _ _ _ _ _ (cell r)) => // U;
  rewrite card_T; case: (cells #|part cell (T :\ r) (cell r)| U).
Qed.

(* The smallest delta of whole tables is the smallest delta of one cell. *)
Theorem tables_smallest b E k d : 0 < b -> b < 1 ->
  smallest b E k d <->
  tables_private b E k d /\ forall d', tables_private b E k d' -> d <= d'.
Proof.
move=> b_gt0 b_lt1; split=> [[private_d least_d] | [tables_d least_d]].
  split=> [|d' tables_d']; first exact/one_cell_decides.
  by apply: least_d; apply/one_cell_decides.
split=> [|d' private_d']; first exact/one_cell_decides.
by apply: least_d; apply/one_cell_decides.
Qed.

End Tables.
